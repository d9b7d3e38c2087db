package page

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
)

// watchPath is the path of the stream of denials.
const watchPath = prefix + "live/stream"

// AddDenials adds the calls about denials and about single keys to p.
func AddDenials(p *Page) {
	p.Handle(http.MethodGet, prefix+"live", access.Read, live)
	p.Handle(http.MethodGet, watchPath, access.Read, p.watch)
	p.Handle(http.MethodPost, prefix+"why", access.Read, why)
	p.Handle(http.MethodGet, prefix+"key", access.Read, key)
	p.Handle(http.MethodGet, prefix+"keys", access.Read, keys)
}

// reasons are those that a caller can filter by.
var reasons = []top.Reason{top.ReasonLimit, top.ReasonBan, top.ReasonHolds, top.ReasonVerdict, top.ReasonOutage}

// errNoDenials is the answer of a service that keeps no denials.
var errNoDenials = &answer.Problem{Status: http.StatusNotFound, Detail: "the service keeps no denials: it runs with --top-keys 0"}

// liveAnswer is the answer of [live].
type liveAnswer struct {
	Now       instant     `json:"now"`
	Decisions texts       `json:"decisions"`         // the newest one first
	Dropped   int64       `json:"dropped,omitempty"` // not kept
	Keys      top.KeyForm `json:"keys"`              // how they are shown

	// Degraded reports whether the log that instances share did not answer.
	Degraded bool `json:"degraded,omitempty"`
}

// texts are values as JSON.
type texts []json.RawMessage

// add appends v, unless that takes more than room bytes, of which it leaves none then: the list ends there.
func (t *texts) add(v decision, room *int) {
	if *room == 0 {
		return
	}
	b, err := json.Marshal(v)
	if err != nil || len(b) > *room {
		*room = 0
		return
	}
	*t, *room = append(*t, b), *room-len(b)
}

// live answers with the newest denials: decisions that this process has kept whole, and before them lines of the
// journal, which outlive a restart and can be of other instances.
func live(c *Caller, w http.ResponseWriter, r *http.Request) error {
	space, f, n, err := denialsAsked(c, r)
	if err != nil {
		return err
	}
	tops := space.Tops()
	kept, oldest, dropped := tops.Decisions(f, n)
	a := liveAnswer{Now: instant{time.Now()}, Decisions: texts{}, Dropped: dropped, Keys: tops.ShowsKeys()}
	room := maxDecision
	for _, k := range kept {
		a.Decisions.add(decisionOf(k), &room)
	}
	if set := space.Engine().Rules(); len(kept) < n && (f.Rule != "" || set.Len() <= journalRules) {
		lines, err := journal(r.Context(), tops, set, f, c.Holder.Share(), oldest, n-len(kept))
		if err != nil {
			return err
		}
		a.Degraded = lines.Degraded
		for i := range lines.List {
			a.Decisions.add(lineOf(&lines.List[i]), &room)
		}
	}
	return respond(w, a)
}

// journal returns lines that f selects, and that are before an instant, if that is not zero. share is the caller's.
func journal(ctx context.Context, tops *top.Collector, set *rule.Set, f top.DecisionFilter, share string, before time.Time, n int) (top.Denials, error) {
	var rules []top.Selected
	for i := range set.Len() {
		if name := set.Rule(i).Name; (f.Rule == "" || f.Rule == name) && set.Rule(i).Kind() != rule.KindCounter {
			rules = append(rules, top.Selected{Rule: name})
		}
	}
	d, err := tops.Denials(ctx, top.Query{Rules: rules, N: journalMost, Share: share})
	d.List = slices.DeleteFunc(d.List, func(l top.Denial) bool {
		return !before.IsZero() && !l.Time.Before(before) || !f.Selects(&l)
	})
	d.List = d.List[:min(n, len(d.List))]
	return d, err
}

const (
	// journalMost is how many lines of the journals are looked at, and journalRules the most rules whose journals
	// are all read, each of which can be a call of the store.
	journalMost, journalRules = 1000, 500
)

// denialsAsked returns the namespace that r is for, which keeps denials, and which of them r selects.
func denialsAsked(c *Caller, r *http.Request) (space *namespace.Namespace, f top.DecisionFilter, n int, err error) {
	if space, err = c.Namespace(); err != nil {
		return nil, f, 0, err
	}
	if space.Tops() == nil {
		return nil, f, 0, errNoDenials
	}
	f, n, err = liveFilter(r)
	return space, f, n, err
}

// liveFilter reads ?rule=…&reason=…&outcome=…&q=…&shadow=…&n=….
func liveFilter(r *http.Request) (f top.DecisionFilter, n int, err error) {
	n = 200
	err = query(r, func(name, value string) (err error) {
		switch name {
		case "rule":
			f.Rule = value
		case "reason":
			if f.Reason = top.Reason(value); value != "" && !slices.Contains(reasons, f.Reason) {
				return bad(name, "%.64q: want one of %v", value, reasons)
			}
		case "outcome":
			f.Outcome = value
		case "q":
			f.Text = value
		case "shadow":
			if f.Enforced = value == "no"; !f.Enforced && value != "" && value != "yes" {
				return bad(name, "%.64q: want yes or no", value)
			}
		case "n":
			if n, err = strconv.Atoi(value); err != nil || n < 1 || n > 1000 {
				return bad(name, "%.64q: want a number from 1 to 1000", value)
			}
		default:
			return bad(name, "is unknown; want rule, reason, outcome, q, shadow and n")
		}
		return nil
	})
	return f, n, err
}

const (
	messagePace = 250 * time.Millisecond // the least time between two messages
	watchBeat   = 15 * time.Second       // the interval between two comments of a stream without messages
)

// watch sends denials as they happen (server-sent events).
func (p *Page) watch(c *Caller, w http.ResponseWriter, r *http.Request) error {
	space, f, _, err := denialsAsked(c, r)
	if err != nil {
		return err
	}
	to, end, err := p.openStream(c, space, w, r)
	if err != nil {
		return err
	}
	defer end()
	denials := space.Tops().Watch(f)
	defer denials.Close()
	for b := []byte(": weir\n\n"); to.send(b); {
		ctx, cancel := context.WithTimeout(to.ctx, watchBeat)
		list, missed, err := denials.Next(ctx)
		cancel()
		switch {
		case to.ctx.Err() != nil:
			return nil
		case err != nil: // there are none
			b = append(b[:0], ":\n\n"...)
			continue
		}
		b = appendMessage(b[:0], list, missed)
		pause := time.NewTimer(messagePace) // what comes meanwhile is sent together
		select {
		case <-pause.C:
		case <-to.ctx.Done():
			pause.Stop()
			return nil
		}
	}
	return nil
}

// appendMessage appends decisions as one message.
func appendMessage(b []byte, list []*top.Decision, missed int64) []byte {
	m := struct {
		Decisions []decision `json:"decisions"` // the oldest one first
		Missed    int64      `json:"missed,omitempty"`
	}{Missed: missed}
	for _, k := range list {
		m.Decisions = append(m.Decisions, decisionOf(k))
	}
	return appendEvent(b, "denials", m)
}

// question is a request that a caller asks about.
type question struct {
	Attributes map[string]string `json:"attributes"`
	Hits       *int64            `json:"hits"`
}

const (
	maxQuestion = 128 << 10 // bytes

	// maxDecision is the maximum size of the decision that an explanation shows, and of all decisions in a list, in bytes.
	maxDecision = 2 << 20

	// maxWindows is how many windows an explanation shows.
	maxWindows = 8
)

// why answers how a request would be decided now, and why. It counts nothing.
func why(c *Caller, w http.ResponseWriter, r *http.Request) error {
	var q question
	if err := readJSON(r, maxQuestion, &q); err != nil {
		return err
	}
	hits := int64(1)
	if q.Hits != nil {
		if hits = *q.Hits; hits < 1 {
			return bad("hits", "%d: want at least 1", hits)
		}
	}
	attrs, err := q.attributes()
	if err != nil {
		return err
	}
	space, err := c.Namespace()
	if err != nil {
		return err
	}
	e := space.Engine()
	rules := e.Rules()
	d, explanations, err := space.Explain(r.Context(), weir.Request{Attributes: attrs, Hits: hits}, run.Options{MaxSize: maxDecision})
	if err != nil {
		return err
	}
	now := time.Now()
	a := explained(hits, attrs, &d, explanations, rules, now)
	shown := 0
	for i := range a.Rules {
		j := &a.Rules[i]
		if at, ok := rules.Find(j.Rule); ok && j.Numbers && shown < maxWindows {
			if u, err := e.Usage(r.Context(), j.Rule, attrs); err == nil {
				j.Leaving = leavingOf(rules.Rule(at), &u, now)
				shown++
			}
		}
	}
	return respond(w, a)
}

// attributes returns the attributes of q, sorted by name.
func (q *question) attributes() (all []weir.Attribute, err error) {
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		if all, err = withAttribute(all, name, q.Attributes[name]); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, bad("attributes", "are missing: name those of the request, such as {\"user\": \"42\"}")
	}
	return all, nil
}
