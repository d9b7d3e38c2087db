package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"maps"
	"strings"
	"sync/atomic"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// features are what a call needs of the script. A server makes the functions of
// a script anew at each call, so a script holds what its calls need and no
// more: measured, all kinds in one script cost 5 µs a call.
type features uint16

const (
	sliding features = 1 << iota
	cells
	fixed
	calendar
	bucket
	after
	membersSliding
	membersFixed
	membersCalendar
	refunds  // ops that give back
	slow     // more than to look at sliding limits, or to add to them
	apart    // ops that are counted whatever the others say
	many     // more than one op
	fastOne  // nothing slow, one op
	fastMany // nothing slow, several ops, none apart
)

const (
	members = membersSliding | membersFixed | membersCalendar
	always  = 1<<16 - 1
)

// featureNames are the names that lines "--: name" in a file have: what follows
// is for calls with one of these features, up to "--: all".
// "--: not name" is for calls without it.
var featureNames = map[string]features{
	"all":              always,
	"sliding":          sliding,
	"fixed":            fixed,
	"calendar":         calendar,
	"members":          members,
	"members_sliding":  membersSliding,
	"members_fixed":    membersFixed,
	"members_calendar": membersCalendar,
	"refund":           refunds,
	"many":             many,
	"counts_else":      members | after, // a take does not add its hits to what is used
	"fast_one":         fastOne,
}

// files are the names of the files of a script with these features, in order.
func (f features) files() []string {
	files := []string{"head"}
	for _, part := range []struct {
		file string
		of   features
	}{
		{"fast_one", fastOne},
		{"fast_many", fastMany},
		{"open", always},
		{"sliding", sliding},
		{"cells", cells},
		{"period", fixed | calendar | membersCalendar},
		{"bucket", bucket},
		{"members", members},
		{"after", after},
	} {
		if f&part.of != 0 {
			files = append(files, part.file)
		}
	}
	return append(files, "call")
}

// script is a program in Lua and the hash by which a server knows it.
type script struct{ text, sha string }

// scripts are those that were needed so far, made on first use.
type scripts struct {
	made atomic.Pointer[map[features]*script] // never changed, but replaced
}

// of is the script for calls with these features.
func (s *scripts) of(f features) *script {
	for {
		old := s.made.Load()
		known := map[features]*script{}
		if old != nil {
			if made := (*old)[f]; made != nil {
				return made
			}
			known = maps.Clone(*old)
		}
		known[f] = newScript(f, f.files()...)
		if s.made.CompareAndSwap(old, &known) {
			return known[f]
		}
	}
}

// newScript joins the parts of files that are for f, without comments: a server
// would only keep them in memory.
func newScript(f features, files ...string) *script {
	var text strings.Builder
	for _, file := range files {
		b, err := luaFiles.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // the files are part of this package
		}
		wanted := true
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			if names, ok := strings.CutPrefix(line, "--: "); ok {
				wanted = f.include(names)
				continue
			}
			code, _, _ := strings.Cut(line, "-- ")
			if code = strings.TrimSpace(code); code != "" && wanted {
				text.WriteString(code)
				text.WriteByte('\n')
			}
		}
	}
	sum := sha1.Sum([]byte(text.String()))
	return &script{text.String(), hex.EncodeToString(sum[:])}
}

// include says whether f has one of the named features.
func (f features) include(names string) bool {
	for name := range strings.SplitSeq(names, ", ") {
		name, not := strings.CutPrefix(name, "not ")
		if (f&featureNames[name] != 0) != not {
			return true
		}
	}
	return false
}
