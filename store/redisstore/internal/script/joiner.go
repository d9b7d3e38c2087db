package script

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// text joins the program's files.
func (r recipe) text() string {
	j := joiner{refund: r.refund || r.around, around: r.around, run: r.run}
	j.file("head")
	fast := r.fast && !r.around
	switch {
	case r.run && fast && r.many:
		j.files("head_rest", "run_begin", "run_states")
		if r.kind == nil {
			j.files("common_sliding", "common_fixed", "common_bucket")
		}
		j.file("run_decide_many")
	case r.run && fast:
		j.files("head_rest", "run_begin", "run_states", "run_decide_fast")
	case r.run:
		j.files("head_rest", "run_begin", "run_decide")
	case fast && !r.many:
		j.alone(r)
	default:
		j.files("head_rest", "begin", "begin_time")
	}
	switch {
	case r.around:
		j.file("around_begin")
		if r.fast {
			j.file("around_fast")
		}
	case fast && !r.run && r.many && r.kind == nil:
		j.files("states", "common_sliding", "common_fixed", "common_bucket", "common_single", "common_many", "common_reply")
	case fast && !r.run && r.many:
		k := r.kind.lua
		j.files("states")
		j.each(mostFew, k+"_few_limit")
		for n := 2; n <= mostFew; n++ {
			j.each(n, k+"_few", "few_end")
		}
		j.files(k+"_many_limit", k+"_many_single", k+"_many_fast", k+"_many_reply")
	case !fast && !r.many:
		j.file("read_one")
	}
	j.file("rows")
	if r.around {
		j.file("raw")
	}
	if r.kind != nil {
		j.family(kinds[r.kind.code-1 : r.kind.code])
	} else {
		j.mixed()
	}
	switch {
	case r.around:
		j.file("holding")
		j.file("call_around")
	case r.many:
		j.file("call_many")
	default:
		j.file("call_one")
	}
	switch {
	case r.run && fast:
		j.runFast(r)
	case r.run:
		j.file("run_end")
	}
	return j.String()
}

// joiner makes a program out of whole files.
type joiner struct {
	strings.Builder
	refund bool
	around bool
	run    bool
}

// alone adds the files that decide the common calls of a program for one step with one
// op, before all that others need.
func (j *joiner) alone(r recipe) {
	k := r.kind.lua
	j.files("begin_alone", k+"_alone", "begin_time")
	if r.kind.head {
		j.files(k+"_read", k+"_fast", k+"_exact", k+"_rest")
	} else {
		j.files("read_one", k+"_fast")
	}
	j.file("head_rest")
}

// runFast adds the files that decide the common steps of a run, and hand the others to
// the function that the files before them make.
func (j *joiner) runFast(r recipe) {
	if r.kind == nil {
		j.files("run_fast_begin", "run_fast_step", "common_many", "run_fast_many_end", "run_fast_end")
		return
	}
	k := r.kind.lua
	j.file("run_fast_begin")
	if r.many {
		j.each(mostFew, k+"_few_limit")
		j.files(k+"_many_limit", "run_fast_step")
		j.WriteString("local easy = false\n")
		for n := 2; n <= mostFew; n++ {
			j.each(n, k+"_few", "run_few_end")
		}
		j.WriteString("if not easy then\n")
		j.files(k+"_many_fast", "run_fast_many_end")
		j.WriteString("end\n")
	} else {
		j.files(k+"_limit", "run_fast_step", k+"_numbers", "run_fast_one")
		if r.kind.head {
			j.files(k+"_head", k+"_fast", k+"_exact", "run_fast_one_end")
		} else {
			j.files(k+"_fast", "run_fast_one_end")
		}
	}
	j.file("run_fast_end")
}

// mostFew is the most ops of a step that has lines of its own for each of them.
const mostFew = 3

// each adds the lines of some files for a step with n ops: a group of lines that have the
// sign @ once for each op, with its number in place of the sign.
func (j *joiner) each(n int, names ...string) {
	for _, name := range names {
		var group []string
		flush := func() {
			for op := 1; op <= n && len(group) > 0; op++ {
				for _, line := range group {
					line = strings.ReplaceAll(line, "first + @ - 1", fmt.Sprintf("first + %d", op-1))
					j.line(strings.ReplaceAll(line, "@", strconv.Itoa(op)))
				}
			}
			group = group[:0]
		}
		for line := range strings.Lines(text(name)) {
			line = strings.ReplaceAll(line, "COUNT", strconv.Itoa(n))
			line = strings.ReplaceAll(line, "DOUBLES", strings.Repeat("dd", n))
			if strings.Contains(line, "@") {
				group = append(group, line)
				continue
			}
			flush()
			j.line(line)
		}
		flush()
	}
}

// decided is how a line begins that returns the numbers of the one op: the hits used
// after and before, the wait, and the time until it is unused. A program for one step
// answers as a run of one: with three of them, or with two where the wait is 0. One for a
// run keeps three of them, and goes on with the next step.
const decided = "return decided("

// files adds the lines of some files, without comments.
func (j *joiner) files(names ...string) {
	for _, name := range names {
		j.file(name)
	}
}

// file adds the lines of a file, without comments.
func (j *joiner) file(name string) {
	for line := range strings.Lines(text(name)) {
		j.line(line)
	}
}

// text returns the text of a file.
func text(name string) string {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the files are part of this package
	}
	return string(b)
}

// line adds a line, without a comment.
func (j *joiner) line(line string) {
	code, _, _ := strings.Cut(line, "--")
	code = strings.TrimRight(code, " \n")
	if at, numbers, ok := strings.Cut(code, decided); ok {
		four := strings.Split(strings.TrimSuffix(numbers, ")"), ", ")
		used, wait, reset := four[0], four[2], four[3]
		switch {
		case j.run:
			code = at + fmt.Sprintf("its_used, its_wait, its_reset = %s, %s, %s break", used, wait, reset)
		case wait == "0":
			code = at + fmt.Sprintf("return pk('<BI7dd', %d, now, %s, %s)", statusAdmitted, used, reset)
		default:
			code = at + fmt.Sprintf("return pk('<BI7I7I7I7', %d, now, %s, %s, %s)", statusAll, used, wait, reset)
		}
	}
	if code != "" {
		j.WriteString(code)
		j.WriteByte('\n')
	}
}

// family adds the files of some kinds of one family. When they are several, each
// is in a branch of its own.
func (j *joiner) family(kinds []kind) {
	refund := kinds[0].lua
	if shared := kinds[0].family; shared != "" {
		j.file(shared)
		refund = shared
	}
	for i := range kinds {
		k := &kinds[i]
		if len(kinds) > 1 {
			fmt.Fprintf(j, "if code == %d then\n", k.code)
		}
		if k.calendar {
			j.file("period_end")
		}
		j.file(k.lua)
		if len(kinds) > 1 {
			j.WriteString("end\n")
		}
	}
	if kinds[0].around {
		return
	}
	if j.refund {
		j.file(refund + "_refund")
	}
	if j.around {
		j.file(refund + "_aged")
	}
}

// mixed adds the files of all kinds, each family in a branch of the function that
// makes a row when it is needed.
func (j *joiner) mixed() {
	j.file("lazy_begin")
	for i := 0; i < len(kinds); {
		if kinds[i].around && !j.around {
			i++
			continue
		}
		n := 1
		for ; i+n < len(kinds) && kinds[i].family != "" && kinds[i+n].family == kinds[i].family; n++ {
		}
		if i > 0 {
			j.WriteString("else")
		}
		fmt.Fprintf(j, "if code >= %d and code <= %d then\n", kinds[i].code, kinds[i+n-1].code)
		j.family(kinds[i : i+n])
		i += n
	}
	j.WriteString("end\n")
	j.file("lazy_end")
}
