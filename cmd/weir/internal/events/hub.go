package events

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/top"
)

const (
	// DefaultKeep is the default of [Config.Keep], and MaxKeep its maximum.
	DefaultKeep, MaxKeep = 1000, 10_000

	// maxQueue bounds the events that decisions have added and nobody has read yet, so that as many fit as may wait to
	// be written or sent. pace is the interval between two reads.
	maxQueue = maxOutbox
	pace     = 100 * time.Millisecond

	// ringBytes bounds the texts in a ring.
	ringBytes = 16 << 20

	// historyName is the name of the register with the history.
	historyName = "events"
)

// Config configures a [Hub].
type Config struct {
	Keep     int         // events that are kept for streams; 0: none
	Near     float64     // the share of a quota from which on a key is near it, for rules without their own
	Text     top.KeyText // how keys are shown
	Instance string      // the name of this process in events
	Agent    string      // the name of the program in the header of a webhook call

	// Secret returns the secret of ids, if Text hides keys. All instances that may report the same event have the same one.
	Secret func() []byte

	// Kept keeps the history and what waits for webhooks. Nil: this process does. Shared states that other
	// instances use it, too.
	Kept   kept.Store
	Shared bool

	Webhooks []Webhook
	Log      *slog.Logger
}

// Hub takes events from watchers and others, and delivers them. Make one with [New]. The methods of a nil Hub
// do nothing. It is safe for concurrent use.
type Hub struct {
	near     float64
	text     top.KeyText
	instance string
	log      *slog.Logger
	secret   func() []byte // of ids
	seen     *seen
	ring     *ring
	hooks    []*hook
	history  *shelf // nil: the ring is fed directly
	leader   *leader
	holds    *holds

	wake    chan struct{}
	queued  atomic.Int64
	dropped atomic.Int64
	logged  int64 // of dropped; used by Run only

	mu    sync.Mutex
	queue list[queued] // guarded by mu
}

// queued is an event without its id and text.
type queued struct {
	*Event
	parts  []string
	direct bool // does not wait for the store
}

func newQueue() list[queued] { return newList[queued](maxQueue, math.MaxInt) } // its events have no text yet

// New returns a hub, or nil if c keeps nothing and has no webhooks.
func New(c Config) *Hub {
	if c.Keep <= 0 && len(c.Webhooks) == 0 {
		return nil
	}
	h := &Hub{
		near: c.Near, text: c.Text, instance: c.Instance, log: c.Log, secret: c.Secret, seen: newSeen(),
		ring: &ring{
			list: newList[numbered](c.Keep, ringBytes), places: access.NewPlaces(MaxStreams),
			forgot: map[string]int64{}, byID: map[string]int64{}, streams: map[*Stream]struct{}{},
		},
		wake: make(chan struct{}, 1), queue: newQueue(),
	}
	h.holds = newHolds(h)
	if c.Kept != nil && c.Keep > 0 {
		h.history = newShelf(h, c.Kept, historyName, c.Keep)
		h.history.apply = h.ring.applied
	}
	if c.Shared && !slices.ContainsFunc(c.Webhooks, func(w Webhook) bool { return w.wants(HoldExpired) }) {
		h.holds = nil // what follows them over all instances costs a write for each settle
	} else if c.Shared {
		h.holds.ended = newShelf(h, c.Kept, endedName, endedKeep)
		h.holds.ended.apply, h.holds.ended.fill = h.holds.applied, h.holds.fill
	}
	if c.Shared && len(c.Webhooks) > 0 {
		h.leader = newLeader(c.Kept, c.Instance)
	}
	for _, w := range c.Webhooks {
		k := newHook(h, w, c.Agent)
		if c.Kept != nil {
			k.outbox = newShelf(h, c.Kept, kept.Outboxes+w.Name, 0)
			k.outbox.apply = k.applied
		}
		h.hooks = append(h.hooks, k)
	}
	return h
}

// shownKey is a key as events have it. Its size is bounded.
type shownKey struct {
	text string
	id   string // tells it from others, on all instances, also if keys are not shown
}

func (h *Hub) show(key string) (k shownKey) {
	k.text, _ = h.text.Of(key)
	if k.id = k.text; h.text.Hides() {
		digest := sha256.Sum256([]byte(key))
		k.id = string(digest[:])
	}
	return k
}

// add adds an event about a key. parts tell it from others of its kind, rule and key.
func (h *Hub) add(e *Event, key shownKey, parts ...string) {
	e.Key = key.text
	h.enqueue(queued{e, append([]string{e.Namespace, e.Rule, key.id}, parts...), false})
}

// full reports whether the queue has no room for an event of a namespace, and then counts it as dropped.
func (h *Hub) full(namespace string) bool {
	if h.queued.Load() < maxQueue {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.queue.over(1, 0) || h.queue.of.below(namespace, len(h.queue.events)) {
		return false
	}
	h.dropped.Add(1)
	return true
}

// enqueue adds q to the queue, unless it is full.
func (h *Hub) enqueue(q queued) {
	h.mu.Lock()
	h.dropped.Add(h.queue.put(q))
	h.queued.Store(int64(len(h.queue.events)))
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// take returns the events in the queue.
func (h *Hub) take() []queued {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.queue.events
	h.queue = newQueue()
	h.queued.Store(0)
	return all
}

// Run delivers events until ctx is done.
func (h *Hub) Run(ctx context.Context) {
	if h == nil {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer h.ring.close()
	shelves, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the last pass has put its events into them
	defer stop()
	if h.history != nil {
		group.Go(func() { h.history.run(shelves, h.ring.read) })
	}
	if h.leader != nil {
		group.Go(func() { h.leader.run(ctx) })
	}
	if h.holds != nil {
		group.Go(func() { h.holds.run(ctx) })
		if h.holds.ended != nil {
			group.Go(func() { h.holds.ended.run(shelves, h.holds.follows) })
		}
	}
	for _, k := range h.hooks {
		if k.outbox != nil {
			group.Go(func() { k.outbox.run(shelves, k.sends) })
		}
		group.Go(func() { k.run(ctx) })
	}
	timer := time.NewTimer(pace)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			h.pass()
			return
		case <-h.wake:
		}
		wait := pace
		if h.pass() > maxQueue/10 {
			wait = 4 * pace // so that events take a small part of a processor
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// pass delivers what is in the queue, and returns how many events that were.
func (h *Hub) pass() int {
	all := h.take()
	var secret []byte
	if len(all) > 0 && h.text.Hides() {
		secret = h.secret() // here, because it may wait for the store
	}
	for _, q := range all {
		e := q.Event
		e.ID, e.Instance = idOf(secret, e.Kind, q.parts...), h.instance
		e.encode()
		if h.history != nil && !q.direct {
			h.history.put(e)
		} else {
			h.ring.add(e)
		}
		for _, k := range h.hooks {
			if k.matches(e) {
				k.put(e, q.direct)
			}
		}
	}
	if n := h.dropped.Load(); n > h.logged {
		h.log.Warn("events dropped, because there were too many", "events", n-h.logged, "all", n)
		h.logged = n
	}
	return len(all)
}

// EndStreams ends all streams. There are no new ones.
func (h *Hub) EndStreams() {
	if h != nil {
		h.ring.close()
	}
}

// Keeps reports whether h keeps events for streams.
func (h *Hub) Keeps() bool { return h != nil && h.ring.most > 0 }

// WebhookStats are the numbers of a webhook.
type WebhookStats struct {
	Name              string
	Delivered, Failed int64 // calls
	Waiting           int   // events
}

// Stats returns the numbers of the webhooks.
func (h *Hub) Stats() (all []WebhookStats) {
	if h == nil {
		return nil
	}
	for _, k := range h.hooks {
		all = append(all, WebhookStats{k.Name, k.delivered.Load(), k.failed.Load(), k.waiting()})
	}
	return all
}

// Dropped returns how many events were dropped, of all streams and webhooks.
func (h *Hub) Dropped() int64 {
	if h == nil {
		return 0
	}
	return h.dropped.Load()
}

// Override describes an override for [Hub.OverrideSet] and [Hub.OverrideEnded].
type Override struct {
	Namespace, Rule string
	Key             string    // the attributes, as text
	Limit           int64     // the quota
	Until           time.Time // zero: none
	Note, By        string
	Version         string // tells this override from others of the same attributes; the same on all instances
}

// OverrideSet reports that an override was set.
func (h *Hub) OverrideSet(o Override) { h.override(OverrideSet, o) }

// OverrideEnded reports that an override has reached its end or was removed. Every instance may report it.
func (h *Hub) OverrideEnded(o Override) { h.override(OverrideEnded, o) }

func (h *Hub) override(kind Kind, o Override) {
	if h == nil {
		return
	}
	e := &Event{Kind: kind, Time: time.Now(), Data: Data{Namespace: o.Namespace, Rule: o.Rule, Quota: &o.Limit, Note: o.Note, By: o.By}}
	if h.text.Hides() {
		e.Note = "" // can name a key
	}
	if !o.Until.IsZero() {
		until := o.Until.UTC()
		e.Until = &until
	}
	h.add(e, h.show(o.Key), strconv.FormatInt(o.Limit, 10), o.Until.UTC().String(), o.Version)
}

// Outage reports that a node of the store does not answer, for a reason, or answers again, if that is
// empty. These events do not wait for the store.
func (h *Hub) Outage(node, reason string) {
	if h == nil {
		return
	}
	now, kind := time.Now(), OutageEnded
	if reason != "" {
		kind = OutageBegun
	}
	h.enqueue(queued{
		&Event{Kind: kind, Time: now, Data: Data{Node: node, Reason: reason}},
		[]string{node, h.instance, strconv.FormatInt(now.UnixNano(), 10)}, true,
	})
}

// RulesChanged reports that rules with a hash came into force, or with an empty hash that the namespace is gone.
// Instances that read the same files report it under one id, unless they do so in different minutes.
func (h *Hub) RulesChanged(namespace, before, hash string) {
	if h == nil || before == hash {
		return
	}
	now := time.Now()
	h.enqueue(queued{
		&Event{Kind: RulesChanged, Time: now, Data: Data{Namespace: namespace, Hash: hash, Before: before}},
		[]string{namespace, before, hash, fmt.Sprint(now.Unix() / 60)}, false,
	})
}
