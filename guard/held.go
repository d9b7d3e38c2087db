package guard

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// held has the holds of one call. Until it ends, a timer renews the holds before they expire.
type held struct {
	decider Decider
	every   time.Duration

	mu      sync.Mutex
	request weir.Request // with the receipt of the take; guarded by mu
	timer   *time.Timer  // guarded by mu; nil after the end
}

// hold starts renewing the holds of d.
func hold(decider Decider, d *weir.Decision, r *weir.Request) *held {
	h := &held{decider: decider, request: *r}
	h.request.Attributes, h.request.Receipt = slices.Clone(r.Attributes), d.Receipt
	h.every = cmp.Or(d.Hold, window.MaxLength) / 3
	h.mu.Lock()
	h.timer = time.AfterFunc(h.every, h.renew)
	h.mu.Unlock()
	return h
}

// renew extends the holds. If it is too late, or the store does not answer, the call continues, and
// only its slot is lost.
func (h *held) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil {
		return
	}
	h.do(store.Renew)
	h.timer.Reset(h.every)
}

func (h *held) set(attributes []weir.Attribute) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.request.Attributes = replaced(h.request.Attributes, attributes)
	h.request.Hits = 0 // the attributes have the cost
}

// end settles the holds, once.
func (h *held) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil {
		return
	}
	h.timer.Stop()
	h.timer = nil
	h.do(store.Settle)
}

// do renews or settles the holds, within the decider's own time-out, although the request that
// the call answers may be over. The caller has locked mu.
func (h *held) do(verb store.Verb) {
	var d weir.Decision
	_ = h.decider.Do(context.Background(), verb, &h.request, &d) // the observer has the error
}
