package top

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/sharedlog"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Query selects denials.
type Query struct {
	Rules []Selected
	Since time.Time // the earliest; zero: no bound
	N     int       // the most, of those that are the newest
	Share string    // of the caller; see [access.Holder.Share]
}

// Selected is the denials of one rule.
type Selected struct {
	Rule string

	// Key, if not nil, is the text of their key. Denials after an outage have no key and
	// may have concerned it, so they are selected, too.
	Key *string
}

// ParseSince returns the instant that text states: RFC 3339, or a length of time such as
// 90m, before now.
func (c *Collector) ParseSince(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return c.now().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%.64q: want a length of time such as 90m or 24h, or an instant such as 2026-11-20T12:00:00Z", text)
}

// Denials is the answer to a [Query].
type Denials struct {
	List []Denial // the newest one first

	// Oldest is the time of the oldest denial of the rule that is kept, if the query is
	// about one rule that has denials. It is zero if not all of them were read.
	Oldest time.Time

	// Dropped is the maximum number of denials of the rules that this instance has dropped.
	Dropped int64

	// Degraded reports whether the log that instances share did not answer. The denials
	// are those of this instance since it started.
	Degraded bool
}

// Select returns the rules of set with these indexes, and the key of each that the
// attributes state. Rules whose keys need others are left out, unless there is only one.
// The path of a fault is an attribute.
func (c *Collector) Select(set *rule.Set, rules []int, attributes []weir.Attribute) (all []Selected, bad *fault.Fault) {
	if len(attributes) > 0 && c.text.form == KeyNone {
		return nil, fault.Newf(attributes[0].Name, "denials have no keys, because the service runs with --log-keys none")
	}
	compiled := set.Compiled()
	values := make([]string, compiled.Width())
	for _, a := range attributes {
		if !slices.ContainsFunc(rules, func(i int) bool { return slices.Contains(set.Rule(i).Per, a.Name) }) {
			return nil, fault.Newf(a.Name, "is in no key of the rules asked for%s", fault.DidYouMean(a.Name, keyAttributes(set, rules)))
		}
		at, _ := compiled.Attribute(a.Name)
		values[at] = a.Value
	}
	compiled.Complete(values)
	for _, i := range rules {
		r := set.Rule(i)
		s := Selected{Rule: r.Name}
		if len(attributes) > 0 {
			if missing := missing(set, i, values); missing != "" && len(rules) == 1 {
				return nil, fault.Newf(missing, "is missing: rule %s counts per %s", r.Name, missing)
			} else if missing != "" || len(r.Per) == 0 {
				continue
			}
			key, _ := c.text.Of(compiled.ReadableKey(i, values))
			s.Key = &key
		}
		all = append(all, s)
	}
	if len(all) == 0 && len(attributes) > 0 {
		return nil, fault.Newf(attributes[0].Name, "is not the whole key of a rule; name a rule to see what its key needs")
	}
	return all, nil
}

// keyAttributes returns the attributes of the keys of rules.
func keyAttributes(set *rule.Set, rules []int) (all []string) {
	for _, i := range rules {
		all = append(all, set.Rule(i).Per...)
	}
	return all
}

// missing returns the attribute that a key of rule i needs, and that has no value.
func missing(set *rule.Set, i int, values []string) string {
	for _, name := range set.Rule(i).Per {
		if at, _ := set.Compiled().Attribute(name); values[at] == "" {
			return name
		}
	}
	return ""
}

// Denials returns what q selects. The error is that of ctx.
func (c *Collector) Denials(ctx context.Context, q Query) (Denials, error) {
	if c == nil {
		return Denials{}, nil
	}
	// One command may take longer than a decision: if it is late, all pages before were read in vain.
	reading, cancel := context.WithTimeout(remote.WithTimeout(ctx, sendTime), sharedlog.Time)
	defer cancel()
	if c.remote != nil {
		if end, err := remote.Turn(reading, &c.readers, q.Share); err == nil {
			defer end()
			_ = c.send(reading) // denials that were not sent are still here
		} else if err := ctx.Err(); err != nil {
			return Denials{}, err
		} else {
			cancel() // many wait already: these are the denials of this instance
		}
	}
	c.count()
	var pace export.Pace
	var all Denials
	newest := func() {
		slices.SortStableFunc(all.List, func(a, b Denial) int { return b.Time.Compare(a.Time) })
		all.List = all.List[:min(q.N, len(all.List))]
	}
	for _, s := range q.Rules {
		found := c.read(reading, &q, s, &pace)
		all.List = append(all.List, found.List...)
		all.Dropped += found.Dropped
		if found.Degraded {
			all.Degraded = true
			cancel() // the next rules do not wait for the store, too
		}
		if len(q.Rules) == 1 {
			all.Oldest = found.Oldest
		}
		if len(all.List) >= 2*q.N && q.N > 0 { // earlier denials of the next rules are not needed
			newest()
			q.Since = all.List[q.N-1].Time
		}
	}
	newest()
	c.mu.Lock()
	all.Dropped += c.journal.missed
	c.mu.Unlock()
	return all, ctx.Err()
}

// read returns what q selects of one rule.
func (c *Collector) read(ctx context.Context, q *Query, s Selected, pace *export.Pace) (d Denials) {
	aged := window.At(c.now().Add(-journalAge))
	since := aged
	if !q.Since.IsZero() {
		since = max(since, window.At(q.Since))
	}
	name := logName{c.space, s.Rule}
	c.mu.Lock()
	var chunks []chunk
	if l := c.journal.logs[name]; l != nil {
		d.Dropped = l.dropped
		for _, k := range l.chunks {
			chunks = append(chunks, chunk{text: k.text, newest: k.newest})
		}
	}
	c.mu.Unlock()
	if c.remote != nil {
		if c.readRemote(ctx, &d, s, q.N, since, aged, pace) == nil {
			return d
		}
		d = Denials{Dropped: d.Dropped, Degraded: true}
	}
	for _, k := range slices.Backward(chunks) {
		if len(d.List) >= q.N {
			break
		}
		if k.newest < since {
			continue
		}
		for _, text := range slices.Backward(k.all()) {
			if instantOf(text) >= since && len(d.List) < q.N {
				d.add(s, text)
			}
		}
	}
	d.Oldest = oldest(chunks, aged)
	return d
}

// readRemote adds the newest n denials that s selects to d, none before since, from the log that instances share.
// Those before aged are none any more.
func (c *Collector) readRemote(ctx context.Context, d *Denials, s Selected, n int, since, aged window.Instant, pace *export.Pace) error {
	most := n
	if s.Key != nil {
		most = journalSize
	}
	var oldest window.Instant
	ended := false
	all, err := c.remote.Newest(ctx, c.journal.remote(logName{c.space, s.Rule}), most, pace, func(entry string) bool {
		text := []byte(entry)
		at := instantOf(text)
		if at == 0 {
			return true // another version has written it
		}
		if at < since {
			ended = since == aged
			return false
		}
		oldest = at
		d.add(s, text)
		return len(d.List) < n
	})
	if oldest != 0 && (all || ended) {
		d.Oldest = oldest.Time()
	}
	return err
}

// add adds the denial that text states, if s selects it.
func (d *Denials) add(s Selected, text []byte) {
	if one, ok := readDenial(s.Rule, text); ok && (s.Key == nil || *s.Key == one.Key || one.Reason == ReasonOutage) {
		d.List = append(d.List, one)
	}
}

// oldest returns the time of the oldest denial of chunks that is not before from.
func oldest(chunks []chunk, from window.Instant) time.Time {
	for _, k := range chunks {
		if k.newest < from {
			continue
		}
		for _, text := range k.all() {
			if at := instantOf(text); at >= from {
				return at.Time()
			}
		}
	}
	return time.Time{}
}
