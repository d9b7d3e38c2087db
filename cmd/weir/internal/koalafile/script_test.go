package koalafile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// TestScripts runs testdata/scripts. `dict name=PATH` gives a dict file its
// text; `file` reads its input as a rule file; `rules` reads its input as the
// rules in one that has dicts "black" and "white" and rows 1 to 3; `main` reads
// its input as koala's main file; `load file=NAME` reads testdata/NAME. Each
// shows what it read and its warnings, or every fault, as a person sees them.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/scripts/*.txt", func(t *testing.T, path string) {
		dicts := datatest.Files{"black.dat": "9\n", "white.dat": "1\n"}
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "dict":
				dicts.Add(d)
				return ""
			case "load":
				f, err := load("testdata/" + d.Arg("file"))
				if err != nil {
					return err.Error() + "\n"
				}
				return dump(f)
			case "file":
				return read(d.Text(), dicts)
			case "rules":
				return read(around(d.Text()), dicts)
			case "main":
				return readMain(d.Text())
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// around returns a whole file with some rules, which begin in line 5.
func around(rules string) string {
	return `[dicts]
black : black.dat
white : white.dat
[rules]
` + rules + `[result]
1 : {"Ret_type":1, "Str_reason":"Allow"}
2 : {"Ret_type":2, "Err_no":10, "Str_reason":"Deny"}
3 : {"Ret_type":3, "Err_no":20, "Str_reason":"Vcode", "Need_vcode":1, "Vcode_len":4}
`
}

func read(src string, dicts datatest.Files) string {
	f, err := koalafile.Parse("koala_rule.conf", []byte(src), dicts.Read)
	if err != nil {
		return datatest.Refusal(err)
	}
	return dump(f)
}

// dump returns the content of f, a line each: no dicts that are always there, and the
// outcomes that rules name.
func dump(f *koalafile.File) string {
	var b strings.Builder
	for _, l := range f.Lists {
		if l.Name == "black" || l.Name == "white" {
			continue
		}
		fmt.Fprintf(&b, "dict %s\n", l.Name)
		dumpComment(&b, l.Comment)
	}
	for i := range f.Rules {
		dumpRule(&b, &f.Rules[i])
		dumpComment(&b, f.Comments[f.Rules[i].Name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Outcomes)) {
		o := f.Outcomes[name]
		if !slices.ContainsFunc(f.Rules, func(r rule.Rule) bool { return r.Then == name }) {
			continue
		}
		fmt.Fprintf(&b, "outcome %s allow=%t %s\n", name, o.Allow, o.Body)
		dumpComment(&b, f.RowComments[name])
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "%s\n", w.Error())
	}
	return b.String()
}

func dumpComment(b *strings.Builder, comment string) {
	for line := range strings.Lines(comment) {
		fmt.Fprintf(b, "  # %s\n", strings.TrimSpace(line))
	}
}

func dumpRule(b *strings.Builder, r *rule.Rule) {
	fmt.Fprintf(b, "%s: %s", r.Name, r.Kind())
	if r.Quota != nil {
		fmt.Fprintf(b, " %d in %s", r.Quota.Value, windowText(r.Window))
	}
	if r.After != (window.After{}) {
		fmt.Fprintf(b, " after %d in %s", r.After.Count, windowText(r.After.Window))
	}
	if len(r.Per) > 0 {
		fmt.Fprintf(b, " per %s", strings.Join(r.Per, ", "))
	}
	fmt.Fprintf(b, " then %s, rest %s, outage %s\n", r.Then, map[bool]string{false: "skip", true: "count"}[r.CountRest], r.OnOutage)
	for _, name := range slices.Sorted(maps.Keys(r.Feedback)) {
		fmt.Fprintf(b, "  feedback %s: %d\n", name, r.Feedback[name])
	}
	for _, c := range r.When {
		trim := ""
		if c.Trim {
			trim = " trimmed"
		}
		fmt.Fprintf(b, "  %s%s %s\n", c.Attribute, trim, c.Test)
	}
}

func windowText(w window.Window) string {
	switch w.Kind {
	case window.KindCalendar:
		return fmt.Sprintf("%s of %s", w.Period, w.Zone)
	case window.KindSliding:
		return fmt.Sprintf("sliding %s, exact to %d", w.Length, w.Precision)
	}
	return fmt.Sprintf("%s %s", w.Kind, w.Length)
}

func readMain(src string) string {
	m, warnings, err := koalafile.ParseMain("koala.conf", []byte(src), nil)
	var b strings.Builder
	if err == nil {
		fmt.Fprintf(&b, "listen %q, rules %q, store %q, reload %s\n", m.Listen, m.RuleFile, m.StoreURL(), m.Reload)
	} else {
		fmt.Fprintf(&b, "%v\n", err)
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "%s\n", w.Error())
	}
	return b.String()
}
