// Package replay sends the requests in access logs through rules, at the times in
// the logs, and reports what the rules would have done. [Run] uses the same engine
// that decides live requests.
//
//	report, err := replay.Run(ctx, file.Set, []replay.Log{replay.File("access.log.gz")})
//	err = report.WriteText(os.Stdout)
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
// Lines are replayed in the order of the logs, each at its own time. A server writes
// a line when it has answered the request, so times can go back from one line to
// the next. For a key time does not go back: an earlier time counts as the latest
// one seen for that key.
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

// Run sends every line of the logs, one log after the other, through rules. It
// counts in memory, and starts without any counts. A line that it cannot parse is
// counted in Report.Bad and skipped. If a log cannot be read to its end, or if ctx
// is done, Run returns an error and a report on the lines before.
//
// Run returns only when its reads have ended. So a read that blocks, for example
// from a terminal, delays the return after ctx is done.
func Run(ctx context.Context, rules *rule.Set, logs []Log, options ...Option) (*Report, error) {
	r := run{top: DefaultTop, keepBad: DefaultKeepBad, progress: func(Progress) {}}
	for _, option := range options {
		option(&r)
	}
	if err := r.start(rules); err != nil {
		return nil, err
	}

	ctx, stop := context.WithCancel(ctx)
	in := newReader(ctx)
	go in.read(logs)
	defer func() {
		stop()
		for range in.blocks { // until the reader has ended
		}
	}()

	for b := range in.blocks {
		if err := r.block(ctx, b); err != nil {
			return r.report(), err
		}
		in.free(b)
		r.progress(Progress{Log: b.log, Lines: r.lines, Bad: r.bad})
	}
	return r.report(), ctx.Err()
}

// Option is an option of [Run].
type Option func(*run)

const (
	// DefaultTop is the default number of denied keys that each rule lists.
	DefaultTop = 10
	// DefaultKeepBad is the default number of bad lines in the report.
	DefaultKeepBad = 10
)

// WithTop lists the n keys of each rule with the most denials. Default: DefaultTop.
func WithTop(n int) Option { return func(r *run) { r.top = n } }

// WithKeepBad reports the first n bad lines. Default: DefaultKeepBad.
func WithKeepBad(n int) Option { return func(r *run) { r.keepBad = n } }

// WithProgress calls tell after each block of lines, on the goroutine of [Run], so
// tell must be quick. Default: no calls.
func WithProgress(tell func(Progress)) Option { return func(r *run) { r.progress = tell } }

// Progress describes how much of the logs has been read.
type Progress struct {
	// Log is the name of the current log.
	Log string
	// Lines is the number of lines read so far, in all logs. Bad is the number of
	// bad lines among them.
	Lines, Bad int64
}

// run is a running replay.
type run struct {
	top, keepBad int
	progress     func(Progress)

	engine   *weir.Engine
	entry    accesslog.Entry
	fields   []field
	request  weir.Request
	decision weir.Decision

	log        string // name of the current log
	line       int64  // number of the current line in it
	lines, bad int64
	badLines   []BadLine
	degraded   int64
	tallies    tallies
}

// field is an attribute that the rules use, with a pointer to its value.
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

// block replays the lines of b.
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
		line, rest := text, ""
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			line, rest = text[:end], text[end+1:]
		}
		text = rest
		r.next()
		if err := r.take(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) next() { r.line++; r.lines++ }

// take replays one line.
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
		r.badLines = append(r.badLines, BadLine{r.log, r.line, strings.Clone(why.Error()), strings.Clone(excerpt(line))})
	}
}

func (r *run) report() *Report {
	return &Report{
		Lines: r.lines, Bad: r.bad, BadLines: r.badLines, Degraded: r.degraded,
		Rules: r.tallies.report(r.top),
	}
}
