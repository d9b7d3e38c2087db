package script

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Program is a script: its text, and the hash by which a server finds it.
type Program struct {
	Text, SHA string
	Batch     *Program // decides several calls of this program, or nil
}

func newProgram(text string) *Program {
	sum := sha1.Sum([]byte(text))
	return &Program{Text: text, SHA: hex.EncodeToString(sum[:])}
}

// Peek returns the program that reads all that is kept for a key: the state's
// key, that of its sorted set, and that of its hash.
var Peek = sync.OnceValue(func() *Program {
	var a assembler
	a.add("peek")
	return newProgram(a.String())
})

// A variant is the number of the program for one sort of call: what the program is for,
// with perKind times the code of a kind for the programs of one kind. A server makes the
// functions of a script anew at each call, so a program has few. The programs are
//
//   - general for calls with ops of one kind, with and without refunds;
//   - general without a kind, mixed, for ops of several kinds, and for limits after a count;
//   - fast for calls whose ops are sliding or fixed windows or buckets: it decides most
//     takes and checks by a few bytes of the states;
//   - full for calls with ops about holds or bans, of all kinds;
//   - once for calls that have a record: full, with what reads and writes the record around it;
//   - for each of them without refunds a second one that decides a batch: several
//     calls, each as it would be decided by itself.
type variant int

const (
	general variant = iota
	fast
	full
	refund  variant = 4             // added to general
	once            = full | refund // full has refunds
	batch   variant = 8
	perKind         = 16
)

// base returns v as general, fast or full.
func (v variant) base() variant { return v & (fast | full) }

func (v variant) refunds() bool { return v&refund != 0 }

func (v variant) batches() bool { return v&batch != 0 }

// kind returns the kind of all ops, or nil when there can be several.
func (v variant) kind() *kind { return kindOf(byte(v / perKind)) }

// variants returns the numbers of all programs that can be needed.
func variants() []variant {
	all := []variant{general, refund, fast, full, once}
	for i := range kinds {
		if k := &kinds[i]; !k.wraps && !k.full { // else always mixed, or full
			of := perKind * variant(k.code)
			all = append(all, of, of|refund) // general is 0
		}
	}
	for _, v := range all {
		if !v.refunds() {
			all = append(all, v|batch)
		}
	}
	return all
}

// programs holds the programs that were needed so far. The zero value is ready;
// it is safe for concurrent use.
type programs struct {
	made [perKind * (int(maxCode) + 1)]atomic.Pointer[Program]
}

// of returns the program of a variant, and makes it on first use.
func (p *programs) of(v variant) *Program {
	if made := p.made[v].Load(); made != nil {
		return made
	}
	program := newProgram(v.text())
	if !v.refunds() && !v.batches() {
		program.Batch = p.of(v | batch)
	}
	p.made[v].Store(program)
	return program
}

// Programs returns every program that decides calls.
func (c *Codec) Programs() []*Program {
	all := variants()
	programs := make([]*Program, len(all))
	for i, v := range all {
		programs[i] = c.programs.of(v)
	}
	return programs
}

// Expired returns an argument with a deadline that is past: every program of
// [Codec.Programs] answers that it came too late, or for a batch of no calls nothing,
// and touches no key. A server that runs a program with it has the program from then on.
func Expired() string { return string(append(put7[int64](nil, 0, 1), 0, 0, 0, 0)) }

//go:embed lua/*.lua
var luaFiles embed.FS

// MostRead is after how many bytes of states a program that decides a batch leaves the rest for later.
const MostRead = 256 << 10

// assembler makes the text of a program out of whole files.
type assembler struct {
	strings.Builder
	of variant
}

// text assembles the program's files.
func (v variant) text() string {
	a, base := assembler{of: v}, v.base()
	if a.add("head"); v.batches() {
		a.add("batch_begin")
	} else {
		a.add("begin")
	}
	if base == fast {
		a.add("fast_begin", "fast_sliding", "fast_fixed", "fast_bucket")
		if v.batches() {
			a.WriteString("fast = function(args, first, total, p)\nlocal asked, numbers, writes = asked, numbers, writes\n")
			a.add("fast_call")
			a.WriteString("return decided == total\nend\n")
		} else {
			a.add("fast_call", "fast_end")
		}
	}
	if v == once {
		a.add("once_begin")
	}
	switch { // the rest decides one of its calls
	case v.batches():
		a.WriteString("local function decide(args, first, total, p)\n")
	case v == once: // its only one
		a.WriteString("local function decide()\n")
	}
	a.add("rows")
	if base == full {
		a.add("raw", "holds")
	}
	if k := v.kind(); k != nil {
		a.family(kinds[k.code-1 : k.code])
	} else {
		a.mixed()
	}
	if base == full {
		a.add("holding", "call_full")
	} else {
		a.add("call")
	}
	if v.batches() || v == once {
		a.WriteString("end\n")
	}
	if v == once {
		a.add("once_end")
	}
	if v.batches() {
		a.add("batch_end")
	}
	if v.batches() && base == fast {
		a.add("fast_batch_end")
	}
	return a.String()
}

// add adds the lines of some files, without comments.
func (a *assembler) add(names ...string) {
	for _, name := range names {
		b, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the files are part of this package
		}
		for line := range strings.Lines(string(b)) {
			code, _, _ := strings.Cut(line, "--")
			if code = strings.TrimRight(code, " \n"); code != "" {
				a.WriteString(code + "\n")
			}
		}
	}
}

// family adds the files of some kinds of one family. When they are several, each
// is in a separate branch.
func (a *assembler) family(kinds []kind) {
	shared := kinds[0].family
	if shared != "" {
		a.add(shared)
	} else {
		shared = kinds[0].lua
	}
	for i := range kinds {
		k := &kinds[i]
		if len(kinds) > 1 {
			fmt.Fprintf(a, "if code == %d then\n", k.code)
		}
		if k.calendar {
			a.add("period_end")
		}
		a.add(k.lua)
		if len(kinds) > 1 {
			a.WriteString("end\n")
		}
	}
	about := a.of.base() == full
	if (a.of.refunds() || about) && !kinds[0].full {
		a.add(shared + "_refund")
	}
	if about && !kinds[0].full {
		a.add(shared + "_aged")
	}
}

// mixed adds the files of all kinds, each family in a branch of a function that makes the
// row of a kind when the first op needs it: a server makes the functions of a program anew at
// each call, and most calls need few kinds.
func (a *assembler) mixed() {
	a.WriteString("setmetatable(kinds, {__index = function(rows, code)\n")
	word := "if"
	for i, n := 0, 1; i < len(kinds); i, n = i+n, 1 {
		if kinds[i].full && a.of.base() != full {
			continue
		}
		for ; i+n < len(kinds) && kinds[i].family != "" && kinds[i+n].family == kinds[i].family; n++ {
		}
		fmt.Fprintf(a, "%s code >= %d and code <= %d then\n", word, kinds[i].code, kinds[i+n-1].code)
		a.family(kinds[i : i+n])
		word = "elseif"
	}
	a.WriteString("end\nreturn rawget(rows, code)\nend})\n")
}
