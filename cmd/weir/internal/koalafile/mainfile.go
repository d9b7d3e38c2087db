package koalafile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/fault"
)

// Main holds the settings of koala's main file, koala.conf, that matter to
// weir.
type Main struct {
	// Listen is the address of koala's HTTP, such as ":9981". It is empty if
	// the file names none.
	Listen string

	// RuleFile is the path of the rule file.
	RuleFile string

	// Redis is the address of the Redis server, host:port. It is empty if the
	// file names none. An empty Password means none. (koala sent an empty
	// password, which Redis refuses, and then let everything pass.)
	Redis    string
	Password string

	// Timeout is how long koala waited for an answer of Redis: the longer one of
	// its time-outs to read and to write. The default is 500 ms.
	Timeout time.Duration

	// Reload is how often koala checked its files. The default is 300 s.
	Reload time.Duration
}

// StoreURL returns the URL of m's Redis, redis://:PASSWORD@HOST:PORT, or an
// empty string if m names none.
func (m *Main) StoreURL() string {
	if m.Redis == "" {
		return ""
	}
	u := url.URL{Scheme: "redis", Host: m.Redis}
	if m.Password != "" {
		u.User = url.UserPassword("", m.Password)
	}
	return u.String()
}

const (
	defaultReload  = 300 * time.Second
	defaultTimeout = 500 * time.Millisecond
)

// maxIncludes is how deep main files may include each other.
const maxIncludes = 8

// LoadMain reads the main file at path, and those that it includes, from disk.
// Warnings and errors are those of [ParseMain].
func LoadMain(path string) (Main, fault.List, error) {
	src, err := files.Rules(path)
	if err != nil {
		return Main{}, nil, fmt.Errorf("koala main file: %w", err)
	}
	return ParseMain(path, src, files.Rules)
}

// ParseMain reads src as the text of koala's main file, and those that it includes
// with read. It looks for the rule file in the main file's directory, then in the
// directory above, because koala starts in its home and names
// conf/koala_rule.conf in conf/koala.conf. With a nil read, src comes from no file:
// an include is a fault, and the path of the rule file stays as written.
//
// name is the name of the file in faults. The warnings are about keys without effect. The error
// is a [fault.List].
func ParseMain(name string, src []byte, read func(path string) ([]byte, error)) (Main, fault.List, error) {
	f := mainFile{pass: pass{name: name}, read: read}
	f.lines(src, 0)
	for _, faults := range []fault.List{f.faults, f.warnings} {
		for _, one := range faults {
			if holdsSecret(one.Place.Source) {
				one.Place.Source = ""
			}
		}
	}
	if f.main.RuleFile == "" && len(f.faults) == 0 {
		f.here = entry{number: 1}
		f.fault(piece{}, "no rule file: want a line rule_file = conf/koala_rule.conf")
	}
	if len(f.faults) > 0 {
		return Main{}, f.warnings, f.faults.Err()
	}
	f.main.Timeout = cmp.Or(f.main.Timeout, defaultTimeout)
	f.main.Reload = cmp.Or(f.main.Reload, defaultReload)
	if read != nil {
		f.main.RuleFile = nearby(name, f.main.RuleFile)
	}
	return f.main, f.warnings, nil
}

// holdsSecret reports whether a line may have a password, even under a key that koala does
// not know.
func holdsSecret(line string) bool {
	line = strings.ToLower(line)
	return strings.Contains(line, "auth") || strings.Contains(line, "pass") || strings.Contains(line, "@")
}

// mainFile is one run over a main file.
type mainFile struct {
	pass
	read func(path string) ([]byte, error)
	main Main
}

// lines reads a file of `key = value`, depth files below the first.
func (f *mainFile) lines(src []byte, depth int) {
	for number, line := range splitLines(string(src)) {
		f.here = entry{number: number, text: line}
		s := f.here.piece()
		key, value, ok := s.cut("=")
		word, rest, _ := strings.Cut(s.text, " ")
		switch {
		case s.text == "" || s.text[0] == '#':
		case ok:
			f.set(key, value)
		case strings.EqualFold(word, "include") && strings.TrimSpace(rest) != "":
			f.include(s, strings.TrimSpace(rest), depth)
		default:
			f.fault(s, "want key = value, or # before a comment")
		}
	}
}

// include reads another file at the position of the line that names it.
func (f *mainFile) include(s piece, path string, depth int) {
	if f.read == nil || depth == maxIncludes {
		f.fault(s, "include: the file cannot be read here: want its lines instead of this one")
		return
	}
	path = files.RelativeTo(f.name, path)
	src, err := f.read(path)
	if err != nil {
		f.fault(s, "include: %v", err)
		return
	}
	name, here := f.name, f.here
	f.name = path
	f.lines(src, depth+1)
	f.name, f.here = name, here
}

// set sets one value. Of several with the same key the last one counts, as in
// koala.
func (f *mainFile) set(key, value piece) {
	switch key.text {
	case "listen":
		f.main.Listen = f.address(value)
	case "rule_file":
		f.main.RuleFile = value.text
	case "redis_server":
		f.main.Redis = f.address(value)
	case "redis_auth":
		f.main.Password = value.text
	case "externalReadTimeout", "externalWriteTimeout":
		f.main.Timeout = max(f.main.Timeout, f.length(value, time.Millisecond, "milliseconds", 60_000))
	case "policy_loader_frequency":
		f.main.Reload = f.length(value, time.Second, "seconds", 365*24*60*60)
	default:
		f.meaningless(key)
	}
}

// address returns a host and a port, or an empty string for none.
func (f *mainFile) address(s piece) string {
	if s.text == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(s.text)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 {
		shown := strconv.Quote(s.text)
		if holdsSecret(s.text) {
			shown = "the value"
		}
		f.fault(s, "%s is not an address: want HOST:PORT, such as 127.0.0.1:6379", shown)
	}
	return s.text
}

// length returns a number of units as a length of time. An empty value and 0 stand
// for koala's default.
func (f *mainFile) length(s piece, unit time.Duration, units string, most int64) time.Duration {
	n, err := strconv.ParseInt(s.text, 10, 64)
	if s.text != "" && (err != nil || n < 0 || n > most) {
		f.fault(s, "%q is not a number of %s, want 1 to %d", s.text, units, most)
	}
	return time.Duration(n) * unit
}

// noEffect is part of the warnings of keys that koala has and that do nothing in weir.
const noEffect = " has no effect: "

// meaningless warns of a key that has no effect in weir.
func (f *mainFile) meaningless(key piece) {
	switch name := key.text; {
	case name == "pid_file":
		f.warn(key, "pid_file"+noEffect+"weir writes no pid file")
	case strings.HasPrefix(name, "external") || strings.HasPrefix(name, "redis_pool_"):
		f.warn(key, "%s"+noEffect+"weir makes its connections ahead", name)
	case strings.HasPrefix(name, "log_"):
		f.warn(key, "%s"+noEffect+"weir logs to its standard error", name)
	default:
		f.warn(key, "%q is unknown to koala and to weir", name)
	}
}

// Brief returns the warnings about the main file at path as lines of a log. A main file of
// koala's has many settings without an effect in weir, which share a line; the other warnings,
// such as of a misspelled key, keep their own.
func Brief(path string, warnings fault.List) (lines []string) {
	var idle fault.List
	for _, w := range warnings {
		if strings.Contains(w.Problem, noEffect) {
			idle = append(idle, w)
			continue
		}
		lines = append(lines, w.Summary())
	}
	switch len(idle) {
	case 0:
	case 1:
		lines = append(lines, idle[0].Summary())
	default:
		lines = append(lines, fmt.Sprintf("%s: %d of koala's settings have no effect: weir check %s lists them", path, len(idle), path))
	}
	return lines
}

// nearby resolves a path in the file name: from the file's directory or, if
// nothing is there, from the directory above.
func nearby(name, path string) string {
	found := files.RelativeTo(name, path)
	if _, err := os.Stat(found); !errors.Is(err, fs.ErrNotExist) || filepath.IsAbs(path) {
		return found
	}
	above := filepath.Join(filepath.Dir(name), "..", path)
	if _, err := os.Stat(above); err == nil {
		return above
	}
	return found
}
