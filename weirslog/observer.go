// Package weirslog logs what an engine, a limiter or a counter does, with log/slog:
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithObserver(weirslog.New(slog.Default())))
//
// The lines are paced, so that a flood of denials does not flood the log.
package weirslog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Observer is a [weir.Observer] that logs denied takes (level info), requests that get an error and
// outages of the store (level warn). Make one with [New]. It is safe for concurrent use, also by
// several engines and limiters.
//
// Of the denials of one rule or limiter, of the errors and of the outages it logs the first, and then at most
// one in each interval of [Observer.Every]. The next line has the number of those between in the field
// suppressed.
type Observer struct {
	// Every is the interval. [New] sets it to 10 seconds; 0 logs everything.
	Every time.Duration

	// Keys makes denials have the key in the field key. [New] leaves it false, because a key can be
	// personal data. The text of an error can have a value of the request in any case.
	Keys bool

	log *slog.Logger

	mu    sync.Mutex
	lines map[line]*pace // guarded by mu
}

var _ weir.Observer = (*Observer)(nil)

// line is a kind of line that is paced: a message about a rule, or with an empty rule about none.
type line struct{ message, rule string }

// pace is when a line was logged, and how often it was not since.
type pace struct {
	last       time.Time
	suppressed int64
}

// maxLines is the number of lines that are paced each on its own. Those of further rules are paced together.
const maxLines = 1000

// New returns an observer that logs to l. Its fields may be set before its first use.
func New(l *slog.Logger) *Observer {
	return &Observer{Every: 10 * time.Second, log: l, lines: map[line]*pace{}}
}

// Decided implements [weir.Observer].
func (o *Observer) Decided(ctx context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	if verb != store.Take || d.Allowed || !o.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	suppressed, due := o.due(line{"weir: denied", d.Rule})
	if !due {
		return
	}
	attrs := append(make([]slog.Attr, 0, 6), slog.String("rule", d.Rule), slog.String("outcome", d.Outcome))
	if o.Keys {
		for i := range d.Usages {
			if u := &d.Usages[i]; u.Rule == d.Rule {
				attrs = append(attrs, slog.String("key", u.Key))
				break
			}
		}
	}
	if d.RetryAfter != window.Never {
		attrs = append(attrs, slog.Duration("retry_after", d.RetryAfter))
	}
	if d.Degraded {
		attrs = append(attrs, slog.String("degraded", string(d.DegradedReason)))
	}
	o.write(ctx, slog.LevelInfo, "weir: denied", suppressed, attrs)
}

// Failed implements [weir.Observer].
func (o *Observer) Failed(ctx context.Context, verb store.Verb, err error) {
	o.problem(ctx, "weir: not decided", verb, err)
}

// Outage implements [weir.Observer].
func (o *Observer) Outage(ctx context.Context, verb store.Verb, err error) {
	o.problem(ctx, "weir: store unavailable", verb, err)
}

func (o *Observer) problem(ctx context.Context, message string, verb store.Verb, err error) {
	if !o.log.Enabled(ctx, slog.LevelWarn) {
		return
	}
	if suppressed, due := o.due(line{message: message}); due {
		o.write(ctx, slog.LevelWarn, message, suppressed, []slog.Attr{slog.String("verb", verb.String()), slog.Any("err", err)})
	}
}

// due reports whether a line is to be logged now, and how many of its kind were suppressed before.
func (o *Observer) due(l line) (suppressed int64, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines[l] == nil && len(o.lines) >= maxLines {
		l = line{}
	}
	p := o.lines[l]
	if p == nil {
		p = &pace{}
		o.lines[l] = p
	}
	now := time.Now()
	if !p.last.IsZero() && now.Sub(p.last) < o.Every {
		p.suppressed++
		return 0, false
	}
	suppressed, p.suppressed, p.last = p.suppressed, 0, now
	return suppressed, true
}

func (o *Observer) write(ctx context.Context, level slog.Level, message string, suppressed int64, attrs []slog.Attr) {
	if suppressed > 0 {
		attrs = append(attrs, slog.Int64("suppressed", suppressed))
	}
	o.log.LogAttrs(ctx, level, message, attrs...)
}
