// Package replay sends the requests in logs through rules, at the times in the logs,
// and reports what the rules would have done. [Run] uses the same engine that decides
// live requests.
//
//	report, err := replay.Run(ctx, file.Set, replay.Logs{Files: []replay.Log{replay.File("access.log.gz", nil, nil)}})
//	err = report.Write(os.Stdout, false)
//
// [Compare] sends the same requests through two sets of rules, and [Suggest] measures
// which limit a rule should have. All three read a [Source]. [Logs] is a source that
// reads logs in any [Format]; [AccessLog] is the default.
//
// A line of an access log, in the common or the combined format, is one request
// that costs one hit. Its attributes are
//
//	ip       the client's address, or its name if the server looked it up
//	method   such as GET; empty when the line holds no HTTP request
//	path     without the query; empty when the line holds no HTTP request
//	query    without its question mark
//	status   three digits
//	bytes    the size of the response, 0 if the line has "-"
//	referer  the Referer header
//	agent    the User-Agent header
//	host     the virtual host without its port, if the line has one
//
// In logs of other formats a request can also be a [Check], which counts nothing, or a
// [Record], which counts and is not decided, or a [Refund], or the [Settle], [Cancel] or
// [Renew] of an earlier take. [Suggest] leaves these four out.
//
// Attributes that a line leaves out or gives as "-" are empty. Text that a
// server escaped with backslashes stays escaped.
//
// Lines are replayed in the order of their times. A server can write a line when it has
// answered the request, so lines are out of order by some seconds: [Logs] sorts
// them. If they are out of order by more than [Logs.Sort], Run returns an [OrderError].
package replay

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Run sends every request of source through rules. It counts in memory, and
// starts without any counts. A bad line is counted in Report.Bad and skipped. If the
// source cannot be read to its end, or if ctx is done, Run returns an error
// and a report on the lines before.
//
// Run returns only after its reads have ended, so a read that blocks, for example from a
// terminal, delays the return after ctx is done.
func Run(ctx context.Context, rules *rule.Set, source Source, options ...Option) (*Report, error) {
	o := apply(options)
	f, err := newFeed(ctx, source, rules.Attributes(), &o)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := run{tallies: newTallies(rules)}
	if r.real, err = newDecider(rules, f); err != nil {
		return nil, err
	}
	if o.alone {
		if r.alone, err = newAlone(rules, f); err != nil {
			return nil, err
		}
	}
	if o.peaks {
		if r.peaks, err = newMeasuring(rules, nil, f); err != nil {
			return nil, err
		}
	}
	err = f.each(ctx, r.take)
	return r.report(f, &o), err
}

// Option is an option of [Run], [Compare] and [Suggest].
type Option func(*options)

type options struct {
	top, examples int
	alone, peaks  bool
	progress      func(lines int64)
}

func apply(list []Option) options {
	o := options{top: DefaultTop, examples: DefaultExamples, progress: func(int64) {}}
	for _, option := range list {
		option(&o)
	}
	return o
}

const (
	// DefaultTop is the default number of keys in each list of keys.
	DefaultTop = 10
	// DefaultExamples is the default number of examples for each rule in a
	// comparison.
	DefaultExamples = 3
)

// WithTop lists the n keys of each rule with the most denials. Default: DefaultTop.
func WithTop(n int) Option { return func(o *options) { o.top = n } }

// WithExamples lists n examples for each rule in a comparison. Default:
// DefaultExamples.
func WithExamples(n int) Option { return func(o *options) { o.examples = n } }

// WithAlone makes [Run] also decide each request by each limit as if no other
// limit denied, for [Tally.Alone]. It about doubles the time.
func WithAlone() Option { return func(o *options) { o.alone = true } }

// WithProgress calls tell every few thousand lines with the number of lines read so
// far, in all logs. It calls it on the goroutine of [Run], so tell must be quick.
// Default: no calls.
func WithProgress(tell func(lines int64)) Option { return func(o *options) { o.progress = tell } }

// keptBad is the number of bad lines in a report.
const keptBad = 3

// feed reads a source and counts its lines.
type feed struct {
	reader   Reader
	names    []string // of the attributes
	entry    Entry
	progress func(lines int64)

	deciders  []*decider // that refunds and ends of holds concern
	endsHolds bool       // the format has these

	lines, bad  int64
	records     int64 // of the lines
	ends        int64 // of the lines: refunds, and ends and renewals of holds
	badLines    []BadLine
	unseen      []int          // attributes without a value so far
	first, last window.Instant // of requests
}

func newFeed(ctx context.Context, source Source, names []string, o *options) (*feed, error) {
	reader, err := source.Open(ctx, names)
	if err != nil {
		return nil, err
	}
	f := &feed{
		reader: reader, names: names, entry: Entry{Values: make([]string, len(names))},
		progress: o.progress, badLines: []BadLine{}, // not null in the JSON
	}
	for i := range names {
		f.unseen = append(f.unseen, i)
	}
	if logs, ok := source.(Logs); ok {
		format, ok := logs.Format.(HoldEnder)
		f.endsHolds = ok && format.EndsHolds()
	}
	return f, nil
}

// missing returns the names of the attributes that no request has, if there is a
// request.
func (f *feed) missing() []string {
	if f.lines == f.bad {
		return nil
	}
	var list []string
	for _, i := range f.unseen {
		list = append(list, f.names[i])
	}
	return list
}

// span returns the times of the first and the last request.
func (f *feed) span() (from, to time.Time) {
	if f.lines == f.bad {
		return from, to
	}
	return f.first.Time(), f.last.Time()
}

func (f *feed) close() { _ = f.reader.Close() } // all data was read

// progressEvery is the number of lines between two reports of progress.
const progressEvery = 4096

// each calls take for each request. A request that take refuses as bad input
// counts as a bad line.
func (f *feed) each(ctx context.Context, take func(context.Context, *Entry) error) error {
	defer func() { f.progress(f.lines) }()
	for {
		if err := f.reader.Next(&f.entry); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		f.lines++
		if f.lines%progressEvery == 0 {
			f.progress(f.lines)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if f.entry.Bad != nil {
			f.isBad(f.entry.Bad)
			continue
		}
		do := take
		if f.entry.Verb > Record {
			do = f.end
		}
		if err := do(ctx, &f.entry); err != nil {
			var input *fault.Fault
			if !errors.As(err, &input) {
				return err
			}
			f.isBad(err)
			continue
		}
		if len(f.unseen) > 0 {
			f.unseen = slices.DeleteFunc(f.unseen, func(i int) bool { return f.entry.Values[i] != "" })
		}
		switch v := f.entry.Verb; {
		case v > Record:
			f.ends++
		case v == Record:
			f.records++
		}
		if now := f.entry.Time; f.lines-f.bad == 1 {
			f.first, f.last = now, now
		} else {
			f.first, f.last = min(f.first, now), max(f.last, now)
		}
	}
}

func (f *feed) isBad(why error) {
	more := max(f.entry.Lines, 1) - 1
	f.lines += more
	f.bad += more + 1
	if len(f.badLines) < keptBad {
		e := &f.entry
		f.badLines = append(f.badLines, BadLine{
			strings.Clone(e.Log), e.Line, strings.TrimPrefix(strings.Clone(why.Error()), "weir: "), strings.Clone(excerpt(e.Text)),
		})
	}
}

// end gives back, ends or renews what e is about.
func (f *feed) end(ctx context.Context, e *Entry) error {
	for _, d := range f.deciders {
		_, err := d.do(ctx, e, e.Verb)
		if list := fault.Of(err); len(list) == 1 && list[0].Path == "feedback" {
			continue // changed rules can have other events
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Receipts are the receipts of the takes of a replay, by the names of their holds in the log.
type Receipts map[string]weir.Receipt

// Do does what a request of the log asks. If it is about a hold that no take of the replay has, because the take was
// denied here or is not in the log, Do does nothing, and done is false.
func (rs Receipts) Do(ctx context.Context, on *weir.Engine, verb store.Verb, hold string, r *weir.Request, d *weir.Decision) (done bool, err error) {
	if verb.NeedsReceipt() {
		if r.Receipt = rs[hold]; r.Receipt.IsZero() {
			return false, nil
		}
	}
	if err := on.Do(ctx, verb, r, d); err != nil {
		return false, err
	}
	switch {
	case verb == store.Settle || verb == store.Cancel:
		delete(rs, hold)
	case hold != "" && !d.Receipt.IsZero():
		rs[strings.Clone(hold)] = d.Receipt
	}
	return true, nil
}

// decider decides the requests of a feed by one set of rules, at their times.
type decider struct {
	rules    *rule.Set
	engine   *weir.Engine
	receipts Receipts
	from     []int // the position in the feed of each attribute
	request  weir.Request
	decision weir.Decision
}

func newDecider(rules *rule.Set, f *feed) (*decider, error) {
	memory := memstore.New(memstore.WithClock(func() window.Instant { return f.entry.Time }))
	var s store.Store = memory
	if countsRest(rules) {
		s = &behindStore{Store: memory}
	}
	engine, err := weir.NewEngine(rules, weir.WithStore(s))
	if err != nil {
		return nil, err
	}
	d := &decider{rules: rules, engine: engine, receipts: Receipts{}, from: positions(rules, f.names)}
	f.deciders = append(f.deciders, d)
	d.request.Attributes = make([]weir.Attribute, len(d.from))
	for i, name := range rules.Attributes() {
		d.request.Attributes[i].Name = name
	}
	return d, nil
}

// positions returns the indexes in names of the attributes of rules. names has all of them.
func positions(rules *rule.Set, names []string) []int {
	from := make([]int, len(rules.Attributes()))
	for i, name := range rules.Attributes() {
		for at := range names {
			if names[at] == name {
				from[i] = at
			}
		}
	}
	return from
}

// do does what e asks, and returns the answer, which decides nothing if verb is neither Take nor Check. The decision is
// valid until the next call.
func (d *decider) do(ctx context.Context, e *Entry, verb Verb) (*weir.Decision, error) {
	d.read(e)
	_, err := d.receipts.Do(ctx, d.engine, verb.Store(), e.Hold, &d.request, &d.decision)
	return &d.decision, err
}

// check returns the error that do would return for e.
func (d *decider) check(ctx context.Context, e *Entry) error {
	d.read(e)
	return d.engine.Do(ctx, store.Check, &d.request, &d.decision)
}

func (d *decider) read(e *Entry) {
	d.request.Hits, d.request.Feedback, d.request.Final, d.request.Receipt = e.Hits, e.Feedback, e.Final, weir.Receipt{}
	for i, at := range d.from {
		d.request.Attributes[i].Value = e.Values[at]
	}
}

// run is a running replay.
type run struct {
	real    *decider
	alone   *decider   // nil: not asked for
	peaks   *measuring // nil: not asked for
	tallies *tallies
}

// take replays one request.
func (r *run) take(ctx context.Context, e *Entry) error {
	d, err := r.real.do(ctx, e, e.Verb)
	if err != nil {
		return err
	}
	r.tallies.add(d, e)
	if err := r.peaks.take(ctx, e); err != nil {
		return err
	}
	if r.alone == nil {
		return nil
	}
	alone, err := r.alone.do(ctx, e, e.Verb)
	if err != nil {
		return err
	}
	r.tallies.addAlone(alone, d)
	return nil
}
