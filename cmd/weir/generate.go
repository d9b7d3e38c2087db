package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// maxSteps is the most requests of a generated case. Older ones become one record.
const maxSteps = 30

// generateFrom writes a test file with a case for each limit that denies something in
// source: the requests of the key with the most denials up to the
// instant of its first denial, as they are in the log, and what the rules decide about them.
func (o *testOptions) generateFrom(ctx context.Context, out io.Writer, file *rulefile.File, source replay.Source, options ...replay.Option) error {
	report, err := replay.Run(ctx, file.Set, source, append(options, replay.WithTop(1))...)
	if err != nil {
		return err
	}
	if err := o.logs.checkBad(report.Read()); err != nil {
		return err
	}
	var cases []*sample
	var keys []trial.Key
	for i := range report.Rules {
		if t := &report.Rules[i]; t.Kind == rule.KindLimit.String() && len(t.TopDenied) > 0 {
			top := t.TopDenied[0]
			cases = append(cases, &sample{rule: i, name: t.Name, key: top.Key, denied: window.At(top.First)})
			keys = append(keys, trial.Key{Rules: file.Set, Rule: i, Key: top.Key})
		}
	}
	if len(cases) == 0 {
		return errors.New("no limit denies anything in the log: there is no case to write")
	}
	if err := trial.Steps(ctx, source, []*rule.Set{file.Set}, keys, func(i int, _ *replay.Entry, s trial.Step) bool {
		if s.At <= cases[i].denied {
			cases[i].requests = append(cases[i].requests, s)
		}
		return false
	}); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=weir-test.schema.json\nrules: %s\ncases:\n", rulewriter.Text(o.rules))
	for _, c := range cases {
		if err := c.write(&b, file.Set); err != nil {
			return err
		}
	}
	// What was written must pass.
	tests, err := rulefile.ParseTests("generated", []byte(b.String()), func(string) (*rulefile.File, error) { return file, nil })
	if err != nil {
		return fmt.Errorf("the log has requests that a test file cannot hold: %w", err)
	}
	var failed error
	err = ruletest.Test(ctx, tests, func(c *ruletest.Case) {
		for _, f := range c.Failures {
			failed = errors.Join(failed, f)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// sample is the requests of one key of one limit.
type sample struct {
	rule      int
	name, key string
	denied    window.Instant // of the first denial
	requests  []trial.Step
}

// write writes s as a case.
func (s *sample) write(b *strings.Builder, rules *rule.Set) error {
	slices.SortStableFunc(s.requests, func(x, y trial.Step) int { return cmp.Compare(x.At, y.At) })
	before := s.recent(rules.Rule(s.rule))
	s.requests = trial.Closed(s.requests)
	receipts := replay.Receipts{}
	now := s.requests[0].At
	engine, err := weir.NewEngine(rules, weir.WithStore(memstore.New(memstore.WithClock(func() window.Instant { return now }))))
	if err != nil {
		return err
	}
	defer engine.Close()
	fmt.Fprintf(b, "  - name: %s\n    timezone: UTC\n    start: %s\n    steps:\n", rulewriter.Text(s.name+" denies "+s.key), yamlTime(now))
	if before > 0 {
		r := trial.Step{Verb: replay.Record, Hits: before, Attributes: s.requests[0].Attributes}
		if _, err := engine.Record(context.Background(), weir.Request{Attributes: r.Attributes, Hits: before}); err != nil {
			return err
		}
		fmt.Fprintf(b, "      - {%v} # earlier requests\n", &r)
	}
	for i := range s.requests {
		q := &s.requests[i]
		now = q.At
		r := weir.Request{Attributes: q.Attributes, Hits: q.Hits, Feedback: q.Feedback}
		var d weir.Decision
		done, err := receipts.Do(context.Background(), engine, q.Verb.Store(), q.Hold, &r, &d)
		if err != nil {
			return err
		}
		if !done {
			continue
		}
		if q.Verb >= replay.Record {
			fmt.Fprintf(b, "      - {at: %s, %v}\n", yamlTime(now), q)
			continue
		}
		expect := "allowed: true"
		if !d.Allowed {
			expect = "allowed: false, rule: " + d.Rule + ", retry_after: " + d.RetryAfter.String()
			if d.RetryAfter == window.Never {
				expect = "allowed: false, rule: " + d.Rule + ", retry_after: never"
			}
		}
		fmt.Fprintf(b, "      - {at: %s, %v, expect: {%s}}\n", yamlTime(now), q, expect)
	}
	return nil
}

// recent drops all but the last requests of s. It returns the hits of a record that replaces the
// others, without those that cannot be inside the window.
func (s *sample) recent(r *rule.Rule) (before int64) {
	length := window.Instant(r.Window.Length.Microseconds())
	first := 0
	for length > 0 && s.requests[first].At <= s.denied-length {
		first++
	}
	s.requests = s.requests[first:]
	if len(s.requests) <= maxSteps || r.Measure != window.Count {
		return 0 // sums and members are not the same in each request
	}
	older := s.requests[:len(s.requests)-maxSteps]
	if slices.ContainsFunc(older, func(q trial.Step) bool { return q.Verb > replay.Record }) {
		return 0 // these give back hits
	}
	s.requests = s.requests[len(older):]
	for _, q := range older {
		if q.Verb != replay.Check {
			before += max(q.Hits, 1)
		}
	}
	return before
}

func yamlTime(at window.Instant) string {
	return at.Time().UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}
