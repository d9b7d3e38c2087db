package weir

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// isOnce reports whether r says anything about an idempotency key.
func (r *Request) isOnce() bool { return r.IdempotencyKey != "" || r.IdempotencyFor != 0 }

// onceCall is the part of a call with an idempotency key that is about its records: one for each step of the
// store.
type onceCall struct {
	first, second store.Op
	records       *records
	expires       int64 // the minute in which the records end; 0: they are not counted
}

// newOnceCall returns the records of a call for r.
func newOnceCall(records *records, verb store.Verb, r *Request, o *run.Options) (*onceCall, error) {
	keep := r.IdempotencyFor
	switch {
	case r.IdempotencyKey == "":
		return nil, fault.Newf("idempotency_for", "%v without a key: want idempotency_key, too", keep)
	case len(r.IdempotencyKey) > once.MaxKey:
		return nil, fault.Newf("idempotency_key", "has %d bytes: want 1 to %d", len(r.IdempotencyKey), once.MaxKey)
	case o.Together:
		return nil, fault.Newf("idempotency_key", "in a request that is taken together with others: want none")
	case !verb.CanRepeat():
		return nil, fault.Newf("idempotency_key", "in a %s: want a take, a record, a refund or a settle", verb)
	case keep < 0 || keep > once.Most:
		return nil, fault.Newf("idempotency_for", "%v: want more than 0 and at most %v", keep, once.Most)
	case keep == 0:
		keep = once.Default
	}
	var key []byte
	for _, part := range []string{o.Caller, r.IdempotencyKey} {
		key = append(binary.AppendUvarint(key, uint64(len(part))), part...)
	}
	digest := digestOf(verb, r, key)
	space, limit := records.place()
	first := store.Op{
		Space: space, Limit: limit, Key: key, Member: digest[:],
		N: max(keep.Microseconds(), 1),
	}
	second := first
	second.Key = append(slices.Clone(key), "\x062 step"...)
	return &onceCall{first: first, second: second, records: records}, nil
}

// digestOf returns a digest of what makes r the same request as another one with its key.
func digestOf(verb store.Verb, r *Request, key []byte) [sha256.Size / 2]byte {
	b := append([]byte{byte(verb), 0}, key...)
	if r.Final {
		b[1] = 1
	}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	hits := r.Hits
	if hits == 0 && !verb.NeedsReceipt() {
		hits = 1 // which protocols that name no hits mean by it
	}
	b = binary.AppendVarint(b, hits)
	text(r.Feedback)
	if r.Receipt.IsZero() {
		text("")
	} else {
		text(r.Receipt.String())
	}
	attributes := slices.Clone(r.Attributes)
	slices.SortStableFunc(attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range attributes {
		if i+1 < len(attributes) && attributes[i+1].Name == a.Name || a.Value == "" {
			continue // of two with the same name the last one counts, and an empty one is none
		}
		text(a.Name)
		text(a.Value)
	}
	sum := sha256.Sum256(b)
	return [sha256.Size / 2]byte(sum[:])
}

// release ends the use of o. No new record is kept after a replay or an error.
func (o *onceCall) release(failed bool) {
	if o.expires > 0 && (failed || o.first.Result.Before > 0 || o.first.Result == (window.Result{})) {
		o.records.remove(o.expires)
	}
}

// records counts the records that the requests of an engine have made, by the minute in which they end. Its zero value is
// ready for use once it has its namespace.
type records struct {
	namespace string

	mu    sync.Mutex
	space *store.Space // guarded by mu; nil until it is needed, as limit
	limit *window.Compiled
	live  int64   // guarded by mu; the sum of ends
	from  int64   // guarded by mu; the first minute of ends
	ends  []int32 // guarded by mu; by the minute modulo their number; nil: there was none
}

// place returns the space and the limit of the ops of records.
func (r *records) place() (*store.Space, *window.Compiled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.space == nil {
		r.space, r.limit = store.NewSpace(r.namespace, once.Space, once.Space, 2*once.MaxRecords), once.NewLimit() // a request may have two
	}
	return r.space, r.limit
}

// add counts a record that is made now and kept for some microseconds. It returns the minute in which it ends, or 0 if
// there are too many.
func (r *records) add(now time.Time, keep int64) (minute int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = make([]int32, once.Most/time.Minute+2)
	}
	for at := now.Unix() / 60; r.from < at; r.from++ {
		if r.live == 0 {
			r.from = at
			break
		}
		end := &r.ends[r.from%int64(len(r.ends))]
		r.live -= int64(*end)
		*end = 0
	}
	if r.live >= once.MaxRecords {
		return 0
	}
	minute = max(now.Add(time.Duration(keep)*time.Microsecond).Unix()/60, r.from)
	minute = min(minute, r.from+int64(len(r.ends))-1) // the clock was set back
	r.ends[minute%int64(len(r.ends))]++
	r.live++
	return minute
}

// remove stops counting a record that ends in a minute.
func (r *records) remove(minute int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := &r.ends[minute%int64(len(r.ends))]; minute >= r.from && *end > 0 {
		*end--
		r.live--
	}
}
