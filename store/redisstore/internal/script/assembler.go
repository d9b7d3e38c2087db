package script

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// text assembles the program's files.
func (v variant) text() string {
	a := assembler{refund: v.refund || v.around, around: v.around}
	a.file("head")
	switch {
	case v.batch && v.common:
		a.files("run_begin", "run_states", "common_sliding", "common_fixed", "common_bucket", "run_decide")
	case v.batch:
		a.files("run_begin", "run_decide")
	case v.common:
		a.files("begin", "states", "common_begin", "common_sliding", "common_fixed", "common_bucket", "common_step", "common_end")
	default:
		a.file("begin")
	}
	if !v.many && !v.around {
		a.file("read_one")
	}
	a.file("rows")
	if v.around {
		a.file("raw")
	}
	if v.kind != nil {
		a.family(kinds[v.kind.code-1 : v.kind.code])
	} else {
		a.mixed()
	}
	switch {
	case v.around:
		a.files("holding", "call_around")
	case v.many:
		a.file("call_many")
	default:
		a.file("call_one")
	}
	switch {
	case v.batch && v.common:
		a.files("run_common_begin", "common_step", "run_common_end")
	case v.batch:
		a.file("run_end")
	}
	return a.String()
}

// assembler makes a program out of whole files.
type assembler struct {
	strings.Builder
	refund bool
	around bool
}

// files adds the lines of some files, without comments.
func (a *assembler) files(names ...string) {
	for _, name := range names {
		a.file(name)
	}
}

// file adds the lines of a file, without comments.
func (a *assembler) file(name string) {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the files are part of this package
	}
	for line := range strings.Lines(string(b)) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimRight(code, " \n"); code != "" {
			a.WriteString(code)
			a.WriteByte('\n')
		}
	}
}

// family adds the files of some kinds of one family. When they are several, each
// is in a branch of its own.
func (a *assembler) family(kinds []kind) {
	refund := kinds[0].lua
	if shared := kinds[0].family; shared != "" {
		a.file(shared)
		refund = shared
	}
	for i := range kinds {
		k := &kinds[i]
		if len(kinds) > 1 {
			fmt.Fprintf(a, "if code == %d then\n", k.code)
		}
		if k.calendar {
			a.file("period_end")
		}
		a.file(k.lua)
		if len(kinds) > 1 {
			a.WriteString("end\n")
		}
	}
	if kinds[0].around {
		return
	}
	if a.refund {
		a.file(refund + "_refund")
	}
	if a.around {
		a.file(refund + "_aged")
	}
}

// mixed adds the files of all kinds, each family in a branch of the function that
// makes a row when it is needed.
func (a *assembler) mixed() {
	a.file("lazy_begin")
	for i := 0; i < len(kinds); {
		if kinds[i].around && !a.around {
			i++
			continue
		}
		n := 1
		for ; i+n < len(kinds) && kinds[i].family != "" && kinds[i+n].family == kinds[i].family; n++ {
		}
		if i > 0 {
			a.WriteString("else")
		}
		fmt.Fprintf(a, "if code >= %d and code <= %d then\n", kinds[i].code, kinds[i+n-1].code)
		a.family(kinds[i : i+n])
		i += n
	}
	a.WriteString("end\n")
	a.file("lazy_end")
}
