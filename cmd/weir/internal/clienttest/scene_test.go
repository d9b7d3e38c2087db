package clienttest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// decider decides requests: a [weir.Engine], or the Client of package client.
type decider interface {
	Take(ctx context.Context, r weir.Request) (weir.Decision, error)
	Check(ctx context.Context, r weir.Request) (weir.Decision, error)
	Record(ctx context.Context, r weir.Request) (weir.Decision, error)
	Refund(ctx context.Context, r weir.Request) (weir.Decision, error)
	Settle(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
	Cancel(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
	Renew(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)

	Do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error
	DoAll(ctx context.Context, items []weir.Item)

	Explain(ctx context.Context, r weir.Request) (weir.Decision, []weir.RuleExplanation, error)
	Usage(ctx context.Context, rule string, attributes []weir.Attribute) (weir.KeyUsage, error)
	Forget(ctx context.Context, rule string, attributes []weir.Attribute) error

	Close() error
}

// runScripts runs testdata/*.txt: rules, requests at their instants, and what is
// decided. They show what a rule can do. open returns what asks an engine, or the
// engine itself, and is called once for each script.
//
//	rules       puts the YAML that follows in force; counters stay
//	run         a line a request: INSTANT VERB [hits=N] [feedback=NAME] name=value …
//	explain     the same, and every rule's view of it
//	usage       RULE name=value …
func runScripts(t *testing.T, open func(*testing.T, *weir.Engine) decider) {
	t.Helper()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		t.Parallel()
		s := &scene{start: window.At(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)), open: open}
		s.now.Store(int64(s.start))
		s.store = memstore.New(memstore.WithClock(func() window.Instant { return window.Instant(s.now.Load()) }))
		t.Cleanup(func() { _ = s.store.Close() })
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			if d.Cmd == "rules" {
				return s.rules(t, d.Input)
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				fmt.Fprintln(&out, s.line(t, d.Cmd, strings.TrimSpace(line)))
			}
			return out.String()
		})
	})
}

// scene is one script under way.
type scene struct {
	start   window.Instant
	now     atomic.Int64 // a window.Instant
	store   *memstore.Store
	open    func(*testing.T, *weir.Engine) decider
	engine  *weir.Engine
	decider decider // asks engine
}

func (s *scene) rules(t *testing.T, src string) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), nil)
	if err != nil {
		return err.Error()
	}
	if s.engine != nil {
		if err := s.engine.SetRules(f.Set); err != nil {
			t.Fatal(err)
		}
	} else {
		if s.engine, err = weir.NewEngine(f.Set, weir.WithStore(s.store)); err != nil {
			t.Fatal(err)
		}
		s.decider = s.open(t, s.engine)
	}
	return fmt.Sprintf("%d rules", f.Set.Len())
}

func (s *scene) line(t *testing.T, cmd, line string) string {
	words := strings.Fields(line)
	if cmd == "usage" {
		u, err := s.decider.Usage(t.Context(), words[0], attributes(words[1:]))
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprintf("%s  %s, %d cells", line, numbersText(u.Usage), len(u.History))
	}
	after, err := time.ParseDuration(words[0])
	if err != nil {
		t.Fatal(err)
	}
	s.now.Store(int64(s.start.Add(after)))
	req := weir.Request{}
	verb, words := words[1], words[2:]
	if len(words) > 0 && strings.HasPrefix(words[0], "hits=") {
		if req.Hits, err = strconv.ParseInt(words[0][len("hits="):], 10, 64); err != nil {
			t.Fatal(err)
		}
		words = words[1:]
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "feedback=") {
		req.Feedback, words = words[0][len("feedback="):], words[1:]
	}
	req.Attributes = attributes(words)
	if cmd == "explain" {
		return s.explain(t, line, req)
	}
	var d weir.Decision
	if err := s.decider.Do(t.Context(), verbs[verb], &req, &d); err != nil {
		return line + "\n    error: " + err.Error()
	}
	return line + "\n    " + decisionText(&d)
}

var verbs = map[string]store.Verb{
	"check": store.Check, "take": store.Take, "record": store.Record, "refund": store.Refund,
}

func attributes(words []string) (attrs []weir.Attribute) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		attrs = append(attrs, weir.Attribute{Name: name, Value: value})
	}
	return attrs
}

func (s *scene) explain(t *testing.T, line string, req weir.Request) string {
	d, why, err := s.decider.Explain(t.Context(), req)
	if err != nil {
		return line + "\n    error: " + err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n    %s", line, decisionText(&d))
	for _, r := range why {
		switch {
		case r.Usage != nil:
			fmt.Fprintf(&out, "\n    + %s: %s", r.Rule, numbersText(*r.Usage))
			if len(r.Reasons) > 0 {
				fmt.Fprintf(&out, ", %s", strings.Join(r.Reasons, "; "))
			}
		case r.Matched && len(r.Reasons) > 0:
			fmt.Fprintf(&out, "\n    + %s: %s", r.Rule, strings.Join(r.Reasons, "; "))
		case r.Matched && r.Shadow:
			fmt.Fprintf(&out, "\n    + %s: would decide", r.Rule)
		case r.Matched:
			fmt.Fprintf(&out, "\n    + %s: decides", r.Rule)
		default:
			fmt.Fprintf(&out, "\n    - %s: %s", r.Rule, strings.Join(r.Reasons, "; "))
		}
	}
	return out.String()
}

func decisionText(d *weir.Decision) string {
	var out strings.Builder
	out.WriteString(d.Outcome)
	if d.Rule != "" {
		out.WriteString(" by " + d.Rule)
	}
	switch {
	case d.RetryAfter == window.Never:
		out.WriteString(", never again")
	case d.RetryAfter > 0:
		fmt.Fprintf(&out, ", retry after %s", window.Length(d.RetryAfter))
	}
	if d.RetryRule != d.Rule && !d.Allowed {
		out.WriteString(" because of " + d.RetryRule)
	}
	if d.Degraded {
		out.WriteString(", degraded")
	}
	for _, u := range d.Usages {
		out.WriteString("; " + u.Rule + " " + numbersText(u))
	}
	if len(d.Verdicts) > 0 {
		out.WriteString("; verdicts " + strings.Join(d.Verdicts, ", "))
	}
	if len(d.Triggered) > 0 {
		out.WriteString("; triggered " + strings.Join(d.Triggered, ", "))
	}
	return out.String()
}

func numbersText(u weir.Usage) string {
	key := u.Key
	if key != "" {
		key = "[" + key + "] "
	}
	watches := ""
	if u.Shadow {
		watches = " (shadow)"
	}
	if u.Kind == rule.KindCounter {
		return fmt.Sprintf("%s%d counted%s", key, u.Used, watches)
	}
	return fmt.Sprintf("%s%d of %d%s", key, u.Used, u.Quota, watches)
}
