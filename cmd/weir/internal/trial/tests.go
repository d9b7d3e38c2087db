package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
	"github.com/weirhq/weir/window"
)

const (
	// mostCases is how many changes become a case, and mostSteps how many requests a case may have.
	mostCases = 5
	mostSteps = 300
)

// history is the requests of a key up to one whose decision has changed. It becomes a case of a test file.
type history struct {
	example replay.Example
	name    string
	expect  string

	steps []Step
	over  bool // the example was found, or there are too many requests
}

// Key is a key of a rule.
type Key struct {
	Rules *rule.Set
	Rule  int
	Key   string
}

// Step is a request of a log as a test file has it.
type Step struct {
	At         window.Instant
	Verb       replay.Verb
	Hits       int64
	Feedback   string
	Hold       string
	Attributes []weir.Attribute
}

// Closed returns steps without the ends of holds whose takes are not among them. It changes steps.
func Closed(steps []Step) []Step {
	holds := map[string]bool{}
	return slices.DeleteFunc(steps, func(s Step) bool {
		if s.Verb == replay.Take {
			holds[s.Hold] = s.Hold != ""
		}
		return s.Verb.Store().NeedsReceipt() && !holds[s.Hold]
	})
}

// tests returns a test file: for some of the changes that c found, the requests of one key, and the decision of the
// last one by the rules in after. It leaves out cases that do not pass, for example because requests of other keys
// contributed to the decision. The text is empty if there are none.
func (j *Job) tests(ctx context.Context, before, after *rulefile.File, c *replay.Comparison, source replay.Source) (string, error) {
	var all []*history
	var keys []Key
	add := func(file *rulefile.File, changes []replay.Change, name, expect string) {
		for _, change := range changes {
			i, ok := file.Set.Find(change.Rule)
			if !ok || len(change.Examples) == 0 || len(all) == mostCases {
				continue
			}
			h := &history{example: change.Examples[0], name: change.Rule + ": " + name, expect: expect}
			if h.expect == "" {
				h.expect = "{allowed: false, rule: " + rulewriter.Text(change.Rule) + "}"
			}
			all = append(all, h)
			keys = append(keys, Key{file.Set, i, h.example.Key})
		}
	}
	add(after, c.Denials, "a request that is newly denied", "")
	add(before, c.Admissions, "a request that is newly allowed", "{allowed: true}")
	if len(all) == 0 {
		return "", nil
	}
	err := Steps(ctx, source, []*rule.Set{before.Set, after.Set}, keys, func(i int, e *replay.Entry, s Step) bool { return all[i].add(e, s) })
	if err != nil {
		return "", err
	}
	name := filepath.Base(j.File)
	head := fmt.Sprintf("# Requests of the log %s, which the changed rules decide otherwise than before.\nrules: %s\ncases:\n", strings.Map(keepPrintable, j.Log), rulewriter.Text(name))
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

// Steps calls add with each request in source that has one of keys, which are those of rules in sets: the number of the key,
// and the request with the attributes that some of sets use. When add has returned true, the key has enough requests.
func Steps(ctx context.Context, source replay.Source, sets []*rule.Set, keys []Key, add func(i int, e *replay.Entry, s Step) bool) error {
	var names []string
	for _, set := range sets {
		names = append(names, set.Attributes()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	r, err := source.Open(ctx, names)
	if err != nil {
		return err
	}
	defer r.Close()
	e := replay.Entry{Values: make([]string, len(names))}
	index, over := map[Key][]int{}, make([]bool, len(keys))
	for i, k := range keys {
		index[k] = append(index[k], i)
	}
	for left := len(keys); left > 0; {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e.Bad != nil {
			continue
		}
		for _, set := range sets {
			for _, k := range keysOf(set, &e, names) {
				for _, i := range index[k] {
					if !over[i] && add(i, &e, stepOf(&e, names)) {
						over[i] = true
						left--
					}
				}
			}
		}
	}
	return nil
}

// keysOf returns the keys under which set counts a request.
func keysOf(set *rule.Set, e *replay.Entry, names []string) (keys []Key) {
	rules := set.Compiled()
	values := make([]string, rules.Width())
	for i, name := range rules.Names() {
		if at, ok := slices.BinarySearch(names, name); ok {
			values[i] = e.Values[at]
		}
	}
	rules.Complete(values)
	for _, i := range rules.Match(values, nil, e.Verb.Store().NeedsReceipt()) {
		keys = append(keys, Key{set, i, rules.ReadableKey(i, values)})
	}
	return keys
}

func stepOf(e *replay.Entry, names []string) Step {
	s := Step{At: e.Time, Verb: e.Verb, Hits: e.Hits, Feedback: strings.Clone(e.Feedback), Hold: strings.Clone(e.Hold)}
	for i, v := range e.Values {
		if v != "" {
			s.Attributes = append(s.Attributes, weir.Attribute{Name: names[i], Value: strings.Clone(v)})
		}
	}
	return s
}

// String returns s as a test file writes it, without its time.
func (s *Step) String() string {
	parts := make([]string, len(s.Attributes))
	for i, a := range s.Attributes {
		parts[i] = rulewriter.Text(a.Name) + ": " + rulewriter.Text(a.Value)
	}
	text := fmt.Sprintf("%v: {%s}", s.Verb.Store(), strings.Join(parts, ", "))
	if s.Hits > 1 || s.Hits == 1 && s.Verb == replay.Settle {
		text += fmt.Sprintf(", hits: %d", s.Hits)
	}
	if s.Feedback != "" {
		text += ", feedback: " + rulewriter.Text(s.Feedback)
	}
	if s.Hold != "" {
		text += ", receipt: " + rulewriter.Text(s.Hold)
	}
	return text
}

// add adds a request, and reports whether it is the last one.
func (h *history) add(e *replay.Entry, s Step) bool {
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
	h.steps = Closed(h.steps)
	at := func(s *Step) time.Time { return s.At.Time().UTC().Truncate(time.Millisecond) }
	start := at(&h.steps[0])
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s\n    start: %s\n    steps:\n", rulewriter.Text(h.name), start.Format("2006-01-02T15:04:05.000Z"))
	for i := range h.steps {
		s := &h.steps[i]
		b.WriteString("      - {")
		if d := at(s).Sub(start); d > 0 {
			fmt.Fprintf(&b, "at: %s, ", offset(d))
		}
		b.WriteString(s.String())
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
