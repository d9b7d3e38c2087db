// Package replay sends recorded requests through rules, at the recorded times
// and with the engine that serves live requests. It shows what rules would have
// done to last month's traffic.
//
// A line of an access log, in the common or the combined format, is one request
// that costs one hit. Its attributes are
//
//	ip       the client's address, or its name where the server looked it up
//	method   such as GET; empty when the line holds no HTTP request
//	path     without the query; empty when the line holds no HTTP request
//	query    without its question mark
//	status   three digits
//	bytes    the size of the response, 0 where the line has "-"
//	referer  the Referer header
//	agent    the User-Agent header
//	host     the virtual host without its port, where the line has one
//
// Attributes that a line leaves out or gives as "-" are empty. Text that a
// server escaped with backslashes stays escaped.
//
// Lines are taken in the order of the logs, each at its own time. A server
// writes a line when it has answered, so times can go back. A key's clock does
// not: an earlier time counts as the latest one seen for that key.
package replay

import (
	"context"
	"errors"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/logs/accesslog"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Run takes every line of the logs, one log after the other, through rules
// whose counters start from nothing. A line that cannot be read is counted and
// passed over. An error is a log that cannot be read on, or the end of ctx;
// the report then says what happened until there.
//
// When Run returns, it no longer reads; so a read that blocks, as one from a
// terminal, delays the end that ctx asks for.
func Run(ctx context.Context, rules *rule.Set, logs []Log, options ...Option) (*Report, error) {
	r := run{top: DefaultTop, keepBad: DefaultKeepBad, progress: func(Progress) {}}
	for _, option := range options {
		option(&r)
	}
	if err := r.start(rules); err != nil {
		return nil, err
	}

	ctx, stop := context.WithCancel(ctx)
	blocks := make(chan block, 2)
	go func() {
		defer close(blocks)
		read(ctx, logs, blocks)
	}()
	defer func() {
		stop()
		for range blocks { // until the reader has gone
		}
	}()

	for b := range blocks {
		if err := r.block(ctx, b); err != nil {
			return r.report(), err
		}
		r.progress(Progress{Log: b.log, Lines: r.lines, Bad: r.bad})
	}
	return r.report(), ctx.Err()
}

// Option changes what [Run] does and reports.
type Option func(*run)

const (
	// DefaultTop is how many denied keys a rule lists when nobody asks.
	DefaultTop = 10
	// DefaultKeepBad is how many bad lines are kept when nobody asks.
	DefaultKeepBad = 10
)

// WithTop lists the n keys of each rule that were denied most.
func WithTop(n int) Option { return func(r *run) { r.top = n } }

// WithKeepBad keeps the first n bad lines for the report.
func WithKeepBad(n int) Option { return func(r *run) { r.keepBad = n } }

// WithProgress calls tell now and then, from Run itself, so it should be quick.
func WithProgress(tell func(Progress)) Option { return func(r *run) { r.progress = tell } }

// Progress is how far a run has come.
type Progress struct {
	// Log is the name of the log that is being read.
	Log string
	// Lines have been read so far, in all logs; Bad ones are among them.
	Lines, Bad int64
}

// run is a replay on its way.
type run struct {
	top, keepBad int
	progress     func(Progress)

	engine   *weir.Engine
	entry    accesslog.Entry
	fields   []field
	request  weir.Request
	decision weir.Decision

	log        string // the one that is being read
	line       int64  // its current line
	lines, bad int64
	badLines   []BadLine
	degraded   int64
	tallies    tallies
}

// field is an attribute that the rules ask for, and where its value is.
type field struct {
	name  string
	value *string
}

func (r *run) start(rules *rule.Set) error {
	s := memstore.New(memstore.WithClock(func() window.Instant { return r.entry.Time }))
	engine, err := weir.NewEngine(rules, weir.WithStore(s))
	if err != nil {
		return err
	}
	r.engine, r.tallies = engine, newTallies(rules)

	e := &r.entry
	for _, f := range []field{
		{"ip", &e.IP}, {"method", &e.Method}, {"path", &e.Path}, {"query", &e.Query}, {"status", &e.Status},
		{"bytes", &e.Bytes}, {"referer", &e.Referer}, {"agent", &e.Agent}, {"host", &e.Host},
	} {
		if _, asked := rules.Attribute(f.name); asked {
			r.fields = append(r.fields, f)
		}
	}
	r.request.Attributes = make([]weir.Attribute, len(r.fields))
	return nil
}

// block takes the lines of b.
func (r *run) block(ctx context.Context, b block) error {
	if b.err != nil {
		return b.err
	}
	if b.first {
		r.log, r.line = b.log, 0
	}
	if b.cut {
		r.next()
		r.isBad(b.text, errLongLine)
		return nil
	}
	for text := b.text; text != ""; {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		r.next()
		if err := r.take(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) next() { r.line++; r.lines++ }

// take sends one line through the engine.
func (r *run) take(ctx context.Context, line string) error {
	if err := accesslog.Parse(line, &r.entry); err != nil {
		r.isBad(line, err)
		return nil
	}
	for i, f := range r.fields {
		r.request.Attributes[i] = weir.Attribute{Name: f.name, Value: *f.value}
	}
	err := r.engine.Do(ctx, store.Take, &r.request, &r.decision)
	if err != nil {
		var input *fault.Fault
		if errors.As(err, &input) {
			r.isBad(line, err)
			return nil
		}
		return err
	}
	if r.decision.Degraded {
		r.degraded++
	}
	r.tallies.add(&r.decision, r.entry.Time)
	return nil
}

func (r *run) isBad(line string, why error) {
	r.bad++
	if len(r.badLines) < r.keepBad {
		r.badLines = append(r.badLines, BadLine{r.log, r.line, why.Error(), strings.Clone(excerpt(line))})
	}
}

func (r *run) report() *Report {
	return &Report{
		Lines: r.lines, Bad: r.bad, BadLines: r.badLines, Degraded: r.degraded,
		Rules: r.tallies.report(r.top),
	}
}
