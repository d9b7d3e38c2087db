package script

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A recipe names the program for one sort of call. A server makes the functions
// of a script anew at each call, so a program has few: measured, all kinds of
// windows in one flat program cost 5 µs a call. The programs are
//
//   - one for calls with one op of a kind, and one for calls with several ops of
//     one kind;
//   - for sliding windows also one of each that decides common calls by a few
//     bytes of the states;
//   - two mixed ones for all other calls: ops of several kinds, refunds, and
//     limits after a count.
type recipe struct {
	kind *kind // nil: mixed
	many bool  // several ops
	fast bool  // decides common calls first
}

// name returns the program's name, which is the name of its golden file too.
func (r recipe) name() string {
	name := "mixed"
	if r.kind != nil {
		name = r.kind.lua
	}
	if r.many {
		name += "_many"
	} else {
		name += "_one"
	}
	if r.fast {
		name += "_fast"
	}
	return name
}

// index returns the program's place in a table of all of them.
func (r recipe) index() int {
	i := 0
	if r.kind != nil {
		i = 4 * int(r.kind.code)
	}
	if r.many {
		i |= 1
	}
	if r.fast {
		i |= 2
	}
	return i
}

// recipes returns all recipes, of every program that can be needed.
func recipes() []recipe {
	all := []recipe{{}, {many: true}}
	for i := range kinds {
		k := &kinds[i]
		if k.wraps {
			continue // always mixed
		}
		all = append(all, recipe{kind: k}, recipe{kind: k, many: true})
		if k.fast {
			all = append(all, recipe{kind: k, fast: true}, recipe{kind: k, many: true, fast: true})
		}
	}
	return all
}

// text joins the program's files.
func (r recipe) text() string {
	var b joiner
	b.file("head")
	switch {
	case r.fast && r.many:
		b.file("fast_many")
	case r.fast:
		b.file("fast_one")
	case !r.many:
		b.file("read_one")
	}
	b.file("rows")
	if r.kind != nil {
		b.kind(r.kind)
	} else {
		b.mixed()
	}
	if r.many {
		b.file("call_many")
	} else {
		b.file("call_one")
	}
	return b.String()
}

// joiner makes a program out of whole files.
type joiner struct{ strings.Builder }

// file adds the lines of a file, without comments.
func (j *joiner) file(name string) {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the files are part of this package
	}
	for line := range strings.Lines(string(b)) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimRight(code, " \n"); code != "" {
			j.WriteString(code)
			j.WriteByte('\n')
		}
	}
}

// kind adds the files of one kind.
func (j *joiner) kind(k *kind) {
	if k.calendar {
		j.file("period_end")
	}
	if k.family != "" {
		j.file(k.family)
	}
	j.file(k.lua)
}

// mixed adds the files of all kinds. Those of each family are in a function of
// their own, which lazy.lua calls when a row of the family is needed.
func (j *joiner) mixed() {
	j.file("lazy")
	j.file("period_end")
	for i := 0; i < len(kinds); {
		family := kinds[i : i+1]
		if shared := kinds[i].family; shared != "" {
			n := slices.IndexFunc(kinds[i:], func(k kind) bool { return k.family != shared })
			if n < 0 {
				n = len(kinds) - i
			}
			family = kinds[i : i+n]
		}
		j.family(family)
		i += len(family)
	}
}

// family adds the files of a family of kinds, in a function.
func (j *joiner) family(kinds []kind) {
	name := kinds[0].family
	fmt.Fprintf(j, "make[%d] = function()\n", kinds[0].code)
	if name == "" {
		name = kinds[0].lua
	} else {
		j.file(name)
	}
	for i := range kinds {
		j.file(kinds[i].lua)
	}
	j.file(name + "_refund")
	j.WriteString("end\n")
	for i := range kinds[1:] {
		fmt.Fprintf(j, "make[%d] = make[%d]\n", kinds[i+1].code, kinds[0].code)
	}
}

// Program is a script: its text, and the hash by which a server finds it.
type Program struct {
	Text, SHA string
	Number    int // of the programs that decide calls, from 0 to 63
}

func newProgram(number int, text string) *Program {
	sum := sha1.Sum([]byte(text))
	return &Program{text, hex.EncodeToString(sum[:]), number}
}

// programs holds the programs that were needed so far. The zero value is ready;
// it is safe for concurrent use.
type programs struct {
	made [4 * (maxCode + 1)]atomic.Pointer[Program]
}

// of returns the program that r names, and makes it on first use.
func (p *programs) of(r recipe) *Program {
	made := &p.made[r.index()]
	if made.Load() == nil {
		made.Store(newProgram(r.index(), r.text()))
	}
	return made.Load()
}

// Peek returns the program that reads all that is kept for a key: the state's
// key, that of its sorted set, and that of its hash.
var Peek = sync.OnceValue(func() *Program {
	var j joiner
	j.file("peek")
	return newProgram(0, j.String())
})
