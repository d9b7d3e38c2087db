package events

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/kept"
)

const (
	lanes      = 8         // keys whose events are sent at the same time
	laneRetry  = lanes / 2 // those of them whose last call failed
	laneEvents = 16        // events of a key in one round

	backoffFirst, backoffMost = time.Second, 5 * time.Minute
	backoffAll                = 5 * time.Second // after rounds without success, because other keys may succeed
	maxReply                  = 64 << 10        // bytes of an answer that are read
	giveUp                    = 24 * time.Hour
	noLease                   = 500 * time.Millisecond // the wait of an instance that does not send
	orderWait                 = time.Second            // for earlier events of other instances
)

// hook sends events to one webhook. Those of one key are sent one after another.
type hook struct {
	Webhook
	hub    *Hub
	outbox *shelf // nil: events wait in memory only
	client *http.Client
	agent  string
	wake   chan struct{}

	delivered, failed atomic.Int64 // calls; for metrics

	mu      sync.Mutex
	pending list[*item]      // guarded by mu
	byID    map[string]*item // guarded by mu
	was     map[string]*item // while the outbox is read again: what byID had before; guarded by mu

	// Used by run only.
	retries map[string]*retry // by what events are in order for
	all     retry             // after a round without any success
	failing bool
	gone    []string // ids to be removed from the outbox
	keys    secrets
	stale   bool // the secrets were read before their file was damaged
}

// item is an event that waits.
type item struct {
	*Event
	got    time.Time
	direct bool // is not in the outbox
	sent   bool
}

// bytes returns the room that i takes beside the outbox.
func (i *item) bytes() int {
	if i.direct {
		return len(i.text)
	}
	return 0
}

// retry is when a failed call is repeated.
type retry struct {
	failures int
	next     time.Time
}

// fail sets the next attempt, which is at most most from now. least is how long the receiver has asked to wait.
func (r *retry) fail(now time.Time, least, most time.Duration) {
	wait := time.Duration(float64(min(backoffFirst<<min(r.failures, 20), most)) * (0.8 + 0.4*rand.Float64()))
	r.failures++
	r.next = now.Add(min(max(wait, least), most))
}

func newHook(h *Hub, w Webhook, agent string) *hook {
	proxy := func(*http.Request) (*url.URL, error) { return nil, nil } // not that of the environment
	if w.Proxy != nil {
		proxy = http.ProxyURL(w.Proxy)
	}
	timeout := cmp.Or(w.Timeout, defaultTimeout)
	return &hook{
		Webhook: w, hub: h, agent: agent, wake: make(chan struct{}, 1), pending: newList[*item](maxOutbox, outboxSize), byID: map[string]*item{}, retries: map[string]*retry{},
		keys: secrets{path: w.SecretFile},
		client: &http.Client{
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy: proxy, DialContext: (&net.Dialer{Timeout: timeout}).DialContext, TLSHandshakeTimeout: timeout,
				MaxIdleConnsPerHost: lanes, MaxConnsPerHost: lanes, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
				MaxResponseHeaderBytes: maxReply,
				// A connection that the network has lost without a word would otherwise get a hundred more requests.
				HTTP2: &http.HTTP2Config{SendPingTimeout: timeout, PingTimeout: timeout},
			},
		},
	}
}

// matches reports whether the webhook wants e.
func (k *hook) matches(e *Event) bool {
	return k.wants(e.Kind) &&
		(len(k.Namespaces) == 0 || slices.Contains(k.Namespaces, e.Namespace)) &&
		(len(k.Rules) == 0 || slices.Contains(k.Rules, e.Rule))
}

// sends reports whether this instance sends what is in the outbox.
func (k *hook) sends() bool { return k.hub.leader.leads() }

// put adds e to what waits.
func (k *hook) put(e *Event, direct bool) {
	if k.outbox != nil && !direct {
		k.outbox.put(e)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID[e.ID] != nil {
		return
	}
	i := &item{Event: e, got: time.Now(), direct: true}
	for k.pending.over(1, i.bytes()) {
		k.hub.dropped.Add(1)
		last := k.pending.ofMost(slices.Backward(k.pending.events))
		if !k.pending.of.below(e.Namespace, len(k.pending.events)) || !k.pending.events[last].direct {
			return
		}
		gone := k.pending.remove(last)
		gone.sent = true
		delete(k.byID, gone.ID)
	}
	k.addLocked(i)
}

// addLocked adds i, after those that happened before it.
func (k *hook) addLocked(i *item) {
	at := len(k.pending.events)
	for at > 0 && k.pending.events[at-1].Time.After(i.Time) {
		at--
	}
	k.pending.insert(at, i)
	k.byID[i.ID] = i
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// applied makes pending what has come into the outbox, and drops what has left it.
func (k *hook) applied(p kept.Page) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.Again {
		if k.was == nil {
			k.was = map[string]*item{}
		}
		maps.Copy(k.was, k.byID) // an earlier reading may not have come to its end
		k.byID = map[string]*item{}
		k.pending.removeFunc(func(i *item) bool { return !i.direct })
		for _, i := range k.pending.events {
			k.byID[i.ID] = i
		}
	}
	removed := false
	for n, id := range p.Fields {
		i := k.byID[id]
		switch {
		case p.Values[n] == "":
			delete(k.byID, id)
			removed = removed || i != nil
		case i != nil:
		case k.was[id] != nil:
			k.addLocked(k.was[id]) // knows that it was sent
		default:
			if e, err := decode(p.Values[n]); err == nil {
				k.addLocked(&item{Event: e, got: time.Now()})
			}
		}
	}
	if removed {
		k.pending.removeFunc(func(i *item) bool { return k.byID[i.ID] != i })
	}
	if !p.More {
		k.was = nil
	}
}

// waiting returns how many events wait.
func (k *hook) waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pending.events)
}

// run sends events until ctx is done.
func (k *hook) run(ctx context.Context) {
	defer k.client.CloseIdleConnections()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		timer.Reset(k.round(ctx))
	}
}

// round sends some events, and returns how long to wait for the next round.
func (k *hook) round(ctx context.Context) time.Duration {
	now := time.Now()
	if wait := k.all.next.Sub(now); wait > 0 {
		return wait
	}
	groups, wait := k.pick(now)
	if len(groups) > 0 {
		wait = 0
		k.send(ctx, groups)
	}
	k.tidy(ctx)
	return wait
}

// pick returns the events of the next round, those of each key together, and how long to wait if there are none.
func (k *hook) pick(now time.Time) (groups [][]*item, wait time.Duration) {
	wait = time.Hour
	leads := k.sends()
	if k.outbox != nil && (!leads || len(k.gone) > 0) {
		wait = noLease
	}
	var ready, old []*item
	k.mu.Lock()
	for _, i := range k.pending.events {
		if i.sent || !i.direct && !leads {
			continue
		}
		if early := orderWait - max(now.Sub(i.Time), now.Sub(i.got)); k.hub.leader != nil && !i.direct && early > 0 {
			wait = min(wait, early)
			break
		}
		if now.Sub(i.Time) > giveUp {
			old = append(old, i)
			continue
		}
		ready = append(ready, i)
	}
	inTurn(ready)
	at, failed := map[string]int{}, 0
	for _, i := range ready {
		order := i.order()
		r := k.retries[order]
		if r != nil && r.next.After(now) {
			wait = min(wait, r.next.Sub(now))
			continue
		}
		g, ok := at[order]
		if !ok {
			if len(groups) == lanes || r != nil && failed == laneRetry {
				continue
			}
			if r != nil {
				failed++
			}
			g = len(groups)
			at[order] = g
			groups = append(groups, nil)
		}
		if len(groups[g]) < laneEvents {
			groups[g] = append(groups[g], i)
		}
	}
	k.mu.Unlock()
	if len(old) > 0 {
		k.hub.dropped.Add(int64(len(old)))
		k.hub.log.Warn("events dropped, because a webhook did not accept them for a day", "webhook", k.Name, "events", len(old))
		k.done(old)
	}
	return groups, wait
}

// send sends groups of events at the same time.
func (k *hook) send(ctx context.Context, groups [][]*item) {
	keys, err := k.keys.read()
	if err != nil && keys != nil && !k.stale {
		k.hub.log.Warn("the secrets of a webhook cannot be read again; those of before stay in use", "webhook", k.Name, "error", err)
	}
	if k.stale = err != nil; keys == nil {
		k.outcome(false, err)
		k.all.fail(time.Now(), 0, backoffAll)
		return
	}
	var all sync.WaitGroup
	results := make([]sending, len(groups))
	for n, group := range groups {
		all.Go(func() { results[n] = k.sendGroup(ctx, group, keys) })
	}
	all.Wait()
	now, succeeded := time.Now(), false
	var failed error
	for n, r := range results {
		k.done(r.sent)
		order := groups[n][0].order()
		if len(r.sent) > 0 {
			succeeded = true
			delete(k.retries, order)
		}
		if r.err != nil && ctx.Err() == nil {
			failed = r.err
			if k.retries[order] == nil {
				k.retries[order] = &retry{}
			}
			k.retries[order].fail(now, r.least, backoffMost)
		}
	}
	if succeeded || failed == nil {
		k.all = retry{}
	} else {
		k.all.fail(now, 0, backoffAll)
	}
	if succeeded || failed != nil {
		k.outcome(succeeded, failed)
	}
}

// sending is what became of a group of events.
type sending struct {
	sent  []*item
	err   error         // of the call after those
	least time.Duration // how long the receiver asks to wait after err
}

// sendGroup sends the events of a group, one after another, until a call fails.
func (k *hook) sendGroup(ctx context.Context, group []*item, keys [][]byte) (s sending) {
	for _, i := range group {
		if !i.direct && !k.sends() {
			break
		}
		if s.least, s.err = k.call(ctx, i, keys); s.err != nil {
			break
		}
		s.sent = append(s.sent, i)
	}
	return s
}

// outcome logs when calls begin to fail, and when they succeed again.
func (k *hook) outcome(succeeded bool, err error) {
	switch {
	case !succeeded && !k.failing:
		k.failing = true
		k.hub.log.Warn("webhook fails; its events wait", "webhook", k.Name, "host", k.URL.Host, "error", withoutURL(err))
	case succeeded && k.failing && err == nil:
		k.failing = false
		k.hub.log.Info("webhook accepts events again", "webhook", k.Name)
	}
}

// withoutURL returns the cause of an error of a call, without the URL, which can have a secret.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// done notes that events need not be sent any more.
func (k *hook) done(items []*item) {
	if len(items) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range items {
		if i.sent { // it made room for another meanwhile
			continue
		}
		i.sent = true
		if i.direct {
			delete(k.byID, i.ID)
		} else {
			k.gone = append(k.gone, i.ID)
		}
	}
	k.pending.removeFunc(func(i *item) bool { return i.sent && i.direct })
	if len(k.retries) > 2*len(k.pending.events) {
		waits := map[string]bool{}
		for _, i := range k.pending.events {
			waits[i.order()] = true
		}
		for order := range k.retries {
			if !waits[order] {
				delete(k.retries, order)
			}
		}
	}
}

// tidy removes what was sent from the outbox, a part at a time: a server decides nothing while it removes one.
func (k *hook) tidy(ctx context.Context) {
	for len(k.gone) > 0 {
		some := k.gone[:min(len(k.gone), writeMost)]
		if k.outbox.remove(ctx, some) != nil {
			return
		}
		k.gone = k.gone[len(some):]
	}
}

// call makes one call with an event. least is how long the receiver asks to wait after an error.
func (k *hook) call(ctx context.Context, i *item, keys [][]byte) (least time.Duration, err error) {
	defer func() {
		if err != nil {
			k.failed.Add(1)
		} else {
			k.delivered.Add(1)
		}
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL.String(), bytes.NewReader(i.text))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	r.Header.Set("User-Agent", k.agent)
	r.Header.Set("webhook-id", i.ID)
	r.Header.Set("webhook-timestamp", at)
	r.Header.Set("webhook-signature", Sign(keys, i.ID, at, i.text))
	answer, err := k.client.Do(r)
	if err != nil {
		return 0, withoutURL(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxReply)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && s > 0 {
			least = time.Duration(min(s, 3600)) * time.Second
		}
		return least, fmt.Errorf("the receiver answers with status %d", answer.StatusCode)
	}
	return 0, nil
}

// Sign returns the value of webhook-signature for a message, by each of keys: see
// https://www.standardwebhooks.com.
func Sign(keys [][]byte, id, at string, body []byte) string {
	var all []string
	for _, key := range keys {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(id + "." + at + "."))
		m.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	}
	return strings.Join(all, " ")
}
