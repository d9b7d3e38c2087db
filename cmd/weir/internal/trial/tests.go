package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
)

const (
	// mostCases is how many changes become a case, and mostSteps how many requests a case may have.
	mostCases = 5
	mostSteps = 300
)

// history is the requests of a key up to one whose decision has changed. It becomes a case of a test file.
type history struct {
	file    *rulefile.File // whose rule denies
	rule    int
	example replay.Example
	name    string
	expect  string

	steps []step
	over  bool // the example was found, or there are too many requests
}

type step struct {
	at         time.Time
	verb       string
	hits       int64
	attributes []string // alternates names and values
}

// tests returns a test file: for some of the changes that c found, the requests of one key, and the decision of the
// last one by the rules in after. It leaves out cases that do not pass, for example because requests of other keys
// contributed to the decision. The text is empty if there are none.
func (j *Job) tests(ctx context.Context, before, after *rulefile.File, c *replay.Comparison, source replay.Source) (string, error) {
	var all []*history
	add := func(file *rulefile.File, changes []replay.Change, name, expect string) {
		for _, change := range changes {
			i, ok := file.Set.Find(change.Rule)
			if !ok || len(change.Examples) == 0 || len(all) == mostCases {
				continue
			}
			h := &history{file: file, rule: i, example: change.Examples[0], name: change.Rule + ": " + name, expect: expect}
			if h.expect == "" {
				h.expect = "{allowed: false, rule: " + scalar(change.Rule) + "}"
			}
			all = append(all, h)
		}
	}
	add(after, c.Denials, "a request that is newly denied", "")
	add(before, c.Admissions, "a request that is newly allowed", "{allowed: true}")
	if len(all) == 0 {
		return "", nil
	}
	if err := collect(ctx, all, source, before, after); err != nil {
		return "", err
	}
	name := filepath.Base(j.File)
	head := fmt.Sprintf("# Requests of the log %s, which the changed rules decide otherwise than before.\nrules: %s\ncases:\n", strings.Map(keepPrintable, j.Log), scalar(name))
	text := ""
	for _, h := range all {
		if one := h.text(); one != "" && passes(ctx, head+one, after) {
			text += one
		}
	}
	if text == "" {
		return "", ctx.Err()
	}
	return head + text, nil
}

func keepPrintable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// passes reports whether all cases of a test file pass under the rules of file.
func passes(ctx context.Context, text string, file *rulefile.File) bool {
	tests, err := rulefile.ParseTests("trial_test.yaml", []byte(text), func(string) (*rulefile.File, error) { return file, nil })
	if err != nil {
		return false
	}
	ok := true
	err = ruletest.Test(ctx, tests, func(c *ruletest.Case) { ok = ok && len(c.Failures) == 0 })
	return ok && err == nil
}

// collect reads source again, up to the last example.
func collect(ctx context.Context, all []*history, source replay.Source, before, after *rulefile.File) error {
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Set.Attributes(), after.Set.Attributes()))))
	r, err := source.Open(ctx, names)
	if err != nil {
		return err
	}
	defer r.Close()
	e := replay.Entry{Values: make([]string, len(names))}
	for left := len(all); left > 0; {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e.Bad != nil {
			continue
		}
		for _, h := range all {
			if !h.over && h.add(&e, names) {
				left--
			}
		}
	}
	return nil
}

// add adds a request, if it has the key of h, and reports whether it is the last one.
func (h *history) add(e *replay.Entry, names []string) (last bool) {
	rules := h.file.Set.Compiled()
	values := make([]string, rules.Width())
	for i, name := range rules.Names() {
		if at, ok := slices.BinarySearch(names, name); ok {
			values[i] = e.Values[at]
		}
	}
	rules.Complete(values)
	if rules.ReadableKey(h.rule, values) != h.example.Key || !slices.Contains(rules.Match(values, nil, false), h.rule) {
		return false
	}
	s := step{at: e.Time.Time().UTC().Truncate(time.Millisecond), verb: e.Verb.Store().String(), hits: e.Hits}
	for i, name := range names {
		if e.Values[i] != "" {
			s.attributes = append(s.attributes, strings.Clone(name), strings.Clone(e.Values[i]))
		}
	}
	h.steps = append(h.steps, s)
	if len(h.steps) > mostSteps {
		h.steps, h.over = nil, true
		return true
	}
	h.over = e.Line == h.example.Line && e.Log == h.example.Log
	return h.over
}

// text returns h as a case, or an empty text.
func (h *history) text() string {
	if !h.over || len(h.steps) == 0 {
		return ""
	}
	start := h.steps[0].at
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s\n    start: %s\n    steps:\n", scalar(h.name), start.Format("2006-01-02T15:04:05.000Z"))
	for i := range h.steps {
		s := &h.steps[i]
		b.WriteString("      - {")
		if d := s.at.Sub(start); d > 0 {
			fmt.Fprintf(&b, "at: %s, ", offset(d))
		}
		fmt.Fprintf(&b, "%s: {", s.verb)
		for n := 0; n < len(s.attributes); n += 2 {
			if n > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", scalar(s.attributes[n]), scalar(s.attributes[n+1]))
		}
		b.WriteString("}")
		if s.hits > 1 {
			fmt.Fprintf(&b, ", hits: %d", s.hits)
		}
		if i == len(h.steps)-1 {
			fmt.Fprintf(&b, ", expect: %s", h.expect)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// offset writes a length of time as test files have it.
func offset(d time.Duration) string {
	if d%time.Second != 0 {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return d.String()
}

// scalar writes text as YAML reads it, whatever it contains.
func scalar(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // unreachable
	}
	return string(b)
}
