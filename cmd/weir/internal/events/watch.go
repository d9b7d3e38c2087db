package events

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Watcher notices the events in the decisions of one namespace. Make one with [Hub.Watch]. The methods of a
// nil Watcher do nothing. It is safe for concurrent use.
type Watcher struct {
	hub  *Hub
	name string // of the namespace
}

// Watch returns the watcher of the namespace called name.
func (h *Hub) Watch(name string) *Watcher {
	if h == nil {
		return nil
	}
	return &Watcher{h, name}
}

// Decided reports the events in d, which it does not keep. An answer that was given before is no event.
func (w *Watcher) Decided(_ context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	if w == nil || verb == store.Check || verb == store.Refund || d.Replayed {
		return
	}
	if d.Hold > 0 && w.hub.holds != nil {
		w.hub.holds.held(w.name, d)
	}
	near := w.hub.near
	for i := range d.Usages {
		u := &d.Usages[i]
		if u.Kind == rule.KindLimit {
			from := near * float64(u.Quota)
			if !u.Allowed && verb == store.Take || u.Struck ||
				float64(u.Used) >= from && float64(u.Before) < from && float64(u.Quota-1) >= from && u.Quota != window.Unlimited {
				w.limit(verb, d, u)
			}
		}
	}
	for _, name := range d.Triggered {
		w.triggered(d, name)
	}
}

// limit reports what has happened in u, which is of a limit.
func (w *Watcher) limit(verb store.Verb, d *weir.Decision, u *weir.Usage) {
	r := top.RuleOf(d.Rules, u.Rule)
	if r == nil {
		return
	}
	now := time.Now()
	if u.Struck && u.BannedUntil != 0 {
		until := u.BannedUntil.Time()
		w.hub.add(w.event(Ban, u, u.Quota, now, &until), w.hub.show(u.Key), strconv.FormatInt(int64(u.BannedUntil)/1000, 10))
	}
	if !u.Allowed && verb == store.Take {
		w.inWindow(Denied, r, u, u.Quota, now)
	} else if r.Near == 0 && u.Used > u.Before {
		w.inWindow(Near, r, u, u.Quota, now)
	}
}

// triggered reports that the rule called name was triggered in d.
func (w *Watcher) triggered(d *weir.Decision, name string) {
	r := top.RuleOf(d.Rules, name)
	if r == nil {
		return
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		switch {
		case u.Rule != name:
			continue
		case r.Trigger == 0:
			w.inWindow(Near, r, u, u.Quota, time.Now())
		case u.Before < r.Trigger:
			w.inWindow(Trigger, r, u, r.Trigger, time.Now())
		}
		return
	}
}

// inWindow reports an event of a key, unless there was one in its window.
func (w *Watcher) inWindow(kind Kind, r *rule.Rule, u *weir.Usage, quota int64, now time.Time) {
	at := now.UnixMicro()
	end := int64(0)
	first := w.hub.seen.first(kind, w.name, u.Rule, u.Key, quota, at, func() int64 {
		end = windowEnd(r, u, at)
		return end
	})
	if first && !w.hub.full(w.name) {
		w.hub.add(w.event(kind, u, quota, now, nil), w.hub.show(u.Key), strconv.FormatInt(quota, 10), periodOf(r, u, at, end))
	}
}

// windowEnd returns the instant from which on the same event of the key of u is another event.
func windowEnd(r *rule.Rule, u *weir.Usage, at int64) int64 {
	length := r.Window.Length.Microseconds()
	if hasEnd(r, u) || length <= 0 {
		if u.ResetAfter == window.Never {
			return math.MaxInt64
		}
		return at + u.ResetAfter.Microseconds()
	}
	return at + length
}

// hasEnd reports whether the window of u ends at one instant, or with a ban.
func hasEnd(r *rule.Rule, u *weir.Usage) bool {
	switch r.Window.Kind {
	case window.KindFixed, window.KindCalendar, window.KindAligned, window.KindEver:
		return true
	}
	return u.Banned
}

// periodOf returns the part of an id that tells windows of a key apart: the end, rounded because instances
// compute it from clocks that differ, or the number of lengths of the window before it.
func periodOf(r *rule.Rule, u *weir.Usage, at, end int64) string {
	length := r.Window.Length.Microseconds()
	switch {
	case end == math.MaxInt64:
		return "ever"
	case hasEnd(r, u) || length <= 0:
		unit := time.Second.Microseconds()
		if 0 < length && length < 10*unit {
			unit /= 10
		}
		return strconv.FormatInt((end+unit/2)/unit, 10) + "e" + strconv.FormatInt(unit, 10)
	}
	return strconv.FormatInt(at/length, 10) + "x" + strconv.FormatInt(length, 10)
}

// event returns an event about u, without key and id.
func (w *Watcher) event(kind Kind, u *weir.Usage, quota int64, now time.Time, until *time.Time) *Event {
	used := u.Used
	if kind == Denied {
		used = u.Before
	}
	return &Event{Kind: kind, Time: now, Data: Data{
		Namespace: w.name, Rule: strings.Clone(u.Rule), Shadow: u.Shadow, Hits: u.Hits, Used: &used, Quota: &quota, Until: until,
	}}
}
