package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// table holds what is pending. Its callers hold the lock.
type table struct {
	entries  entries
	tried    map[store.Reason]entries // the entries that a flush has tried in vain, by why, since the last one of these was sent
	inFlight map[id]*entry            // those that a flush has taken and not settled
	rooms    map[string]*room         // by namespace
	whole    amount                   // of all rooms
	saver    *saver                   // nil: entries are not saved
}

// id identifies a key, a member of it, or the end of a hold with its receipt; see EndUnproven.
type id struct{ namespace, space, key, member string }

// idOf returns the id of op. It is for looking up, where it allocates nothing.
func idOf(op *store.Op) id {
	if op.Limit.Measure == window.Distinct {
		return id{op.Space.Namespace(), op.Space.ID(), string(op.Key), string(op.Member)}
	}
	return id{op.Space.Namespace(), op.Space.ID(), string(op.Key), ""}
}

// entry is what is pending for one id.
type entry struct {
	id       id
	space    *store.Space
	limit    *window.Compiled // of the latest hits
	holding  *window.Compiled // of the latest hold: a reload may have ended holds under the rule
	together string

	hits  int64        // net of what was given back
	state window.State // of limit, with these hits and their dates
	holds []held       // what is not final yet

	why   store.Reason // for which the store has last refused it
	room  *room        // that of the namespace, as long as a table has e
	words int

	judged window.Instant // when the receipt of an end was first judged; see prove

	name    string // of the blob of e; empty: there is none, or it was dropped
	unsure  bool   // a blob with hits of e was dropped, and that may not be written yet
	touched bool   // e is in the saver's list of changes
	gone    bool   // the blob of e is to be dropped
}

// entries are those that wait, by namespace.
type entries map[string]map[id]*entry

// of returns the entry of an id, or nil.
func (w entries) of(i id) *entry { return w[i.namespace][i] }

func (w entries) put(e *entry) {
	if w[e.id.namespace] == nil {
		w[e.id.namespace] = map[id]*entry{}
	}
	w[e.id.namespace][e.id] = e
}

func (w entries) remove(i id) {
	if delete(w[i.namespace], i); len(w[i.namespace]) == 0 {
		delete(w, i.namespace)
	}
}

func (w entries) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, of := range w {
			for _, e := range of {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// waiting yields the entries that wait: those that were not tried yet, and then those that were.
func (t *table) waiting() iter.Seq[entries] {
	return func(yield func(entries) bool) {
		if !yield(t.entries) {
			return
		}
		for _, w := range t.tried {
			if !yield(w) {
				return
			}
		}
	}
}

// of returns the entry of an id that waits, or nil.
func (t *table) of(i id) *entry {
	e := t.entries.of(i)
	for _, w := range t.tried {
		e = cmp.Or(e, w.of(i))
	}
	return e
}

// retry makes entries that were tried wait like those that were not.
func (t *table) retry() {
	for _, w := range t.tried {
		for e := range w.all() {
			t.entries.put(e)
		}
	}
	clear(t.tried)
}

// pair returns the entries of an id: one that waits, and one that is in flight, which has older
// hits. Either can be nil.
func (t *table) pair(i id) [2]*entry { return [2]*entry{t.of(i), t.inFlight[i]} }

// add adds n hits at now to op's key. It returns false if the table is full.
func (t *table) add(op *store.Op, limit *window.Compiled, n int64, now window.Instant) bool {
	e := t.entry(idOf(op), op, limit)
	if e == nil {
		return false
	}
	e.add(n, now)
	e.resize()
	return true
}

// entry returns the entry of an id of op's key, or nil if the table is full.
func (t *table) entry(i id, op *store.Op, limit *window.Compiled) *entry {
	e := t.of(i)
	if e == nil {
		if t.room(i.namespace).full() {
			return nil
		}
		e = &entry{id: i, space: op.Space, holding: limit, together: string(op.Together)}
		t.enter(e)
		t.entries.put(e)
	}
	e.limit = limit
	t.saver.touch(e)
	return e
}

// add adds n hits at now to e.
func (e *entry) add(n int64, now window.Instant) {
	var r window.Result
	e.state = e.limit.Do(transition.RecordNoStrike, &r, e.state, now, window.Hits{N: n}, nil)
	e.hits = min(e.hits+min(n, window.MaxHits), window.MaxHits)
}

// texts returns how many bytes the texts of e have.
func (e *entry) texts() int { return len(e.id.key) + len(e.id.member) + len(e.together) }

// sub subtracts n hits from op's key, at most those that are pending. For an entry in flight this matters only if it becomes
// pending again.
func (t *table) sub(op *store.Op, n int64, now window.Instant) {
	for _, e := range t.pair(idOf(op)) {
		if e == nil || n <= 0 {
			continue
		}
		had := e.amount(now)
		if e.limit.Measure == window.Distinct {
			had = e.hits // uses of the member
		}
		e.state, _ = e.limit.Refund(e.state, now, window.Hits{N: n})
		e.hits -= min(n, e.hits)
		n -= min(n, had)
		t.changed(e, now)
	}
}

// changed marks e as changed after something of it was dropped. It drops e if nothing of it is
// pending. An e in flight is dropped when it comes back.
func (t *table) changed(e *entry, now window.Instant) {
	e.resize()
	if t.saver.touch(e); t.of(e.id) != e {
		return
	}
	if e.turn(now); e.empty(now) {
		t.drop(e)
	}
}

// empty reports whether nothing of e is pending.
func (e *entry) empty(now window.Instant) bool { return e.amount(now) == 0 && len(e.holds) == 0 }

// amount returns how many hits of e are in the window at now.
func (e *entry) amount(now window.Instant) int64 {
	if e.limit.Expires(e.state) <= now {
		return 0
	}
	return min(e.hits, e.limit.StillCounted(e.state, now))
}

func (t *table) drop(e *entry) {
	t.remove(e.id)
	t.leave(e)
	e.gone = true
	t.saver.touch(e)
}

func (t *table) remove(i id) {
	for w := range t.waiting() {
		w.remove(i)
	}
}

// forget drops op's key with all its members.
func (t *table) forget(op *store.Op) {
	want := idOf(op)
	want.member = ""
	for w := range t.waiting() {
		for at, e := range w[want.namespace] {
			if at.member = ""; at == want {
				t.drop(e)
			}
		}
	}
	for at, e := range t.inFlight {
		if at.member = ""; at == want {
			e.hits, e.state, e.holds = 0, nil, nil
			e.resize()
		}
	}
}

// live returns up to n entries of w, as many of each namespace, without those whose id is in flight. It drops entries that
// it finds without a hit in the window.
func (t *table) live(w entries, n int, now window.Instant) []*entry {
	var found []*entry
	each := max(1, n/max(1, len(w)))
	for _, of := range w { // in random order
		most := min(n, len(found)+each)
		for _, e := range of {
			if len(found) >= most {
				break
			}
			e.turn(now)
			if e.mature(now); e.empty(now) {
				t.drop(e)
			} else if t.inFlight[e.id] == nil {
				found = append(found, e)
			}
		}
	}
	return found
}

// take makes live entries, or parts of them, entries in flight. They have at most n records, those with few first, and
// the keys of the records have at most some bytes, unless it is one record. If all that waits was tried in vain, again is true,
// and they are a sample: some for each reason.
func (t *table) take(n, bytes int, now window.Instant) (taken []*entry, again bool) {
	found := t.live(t.entries, n, now)
	if again = len(found) == 0; again {
		for _, w := range t.tried {
			found = append(found, t.live(w, partSize, now)...)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(len(a.holds), len(b.holds)) })
	part := max(partSize, n/max(len(found), 1))
	for _, e := range found {
		most := min(part, n, bytes/max(e.texts(), 1))
		if most == 0 && len(taken) > 0 {
			break
		}
		e = t.fly(e, max(most, 1), now)
		n -= e.records(now)
		bytes -= e.records(now) * e.texts()
		taken = append(taken, e)
	}
	return taken, again
}

// records returns how many records report e at now.
func (e *entry) records(now window.Instant) int {
	if e.amount(now) > 0 {
		return len(e.holds) + 1
	}
	return len(e.holds)
}

// fly makes e an entry in flight. If it has more than some records, these become one in flight, and the rest stays
// pending.
func (t *table) fly(e *entry, most int, now window.Instant) *entry {
	first := e
	if rest := e.records(now) - most; rest > 0 {
		cut := len(e.holds) - rest
		first = &entry{
			id: e.id, space: e.space, limit: e.limit, holding: e.holding, together: e.together, hits: e.hits, state: e.state, holds: e.holds[:cut:cut],
			unsure: e.unsure || e.name != "", // until the blob of the rest is written
		}
		e.hits, e.state, e.holds = 0, nil, e.holds[cut:]
		t.enter(first)
		e.resize()
		t.saver.touch(e)
	} else {
		t.remove(e.id)
	}
	t.inFlight[e.id] = first
	return first
}

// done drops an entry that was taken.
func (t *table) done(e *entry) {
	delete(t.inFlight, e.id)
	t.leave(e)
}

// triedFor returns the entries that were tried in vain, for a reason.
func (t *table) triedFor(why store.Reason) entries {
	if t.tried[why] == nil {
		t.tried[why] = entries{}
	}
	return t.tried[why]
}

// back makes an entry that was taken pending again, in w.
func (t *table) back(e *entry, w entries, now window.Instant) {
	delete(t.inFlight, e.id)
	e.settle(now)
	t.join(e, w, now)
}

// join adds an entry that has entered to w, and merges newer hits of its id into it.
func (t *table) join(e *entry, w entries, now window.Instant) {
	if newer := t.of(e.id); newer != nil {
		newer.turn(now)
		n, holds := newer.amount(now), newer.holds
		e.unsure = e.unsure || newer.unsure || newer.name != ""
		t.drop(newer)
		if e.limit = newer.limit; len(holds) > 0 {
			e.holding = newer.holding
		}
		if e.holds = append(e.holds, holds...); n > 0 {
			e.add(n, now)
		}
	}
	w.put(e)
	e.gone = false
	t.changed(e, now)
}
