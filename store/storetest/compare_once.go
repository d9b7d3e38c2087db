package storetest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// recordLimit is the limit of records.
var recordLimit = window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(24 * time.Hour)})

// records is the space of records.
var records = store.NewSpace("", "records", "records", 0)

// record returns the op of a record that is kept for some time.
func record(key, digest string, keep time.Duration) *store.Op {
	member := make([]byte, 16)
	copy(member, digest)
	return &store.Op{Space: records, Limit: recordLimit, Key: []byte(key), Member: member, N: keep.Microseconds()}
}

// remembered gives some of calls a record, and replaces some by calls that were made before: as they were, or
// with the digest of another request, or with fewer ops.
func (r *random) remembered(calls []store.Call) []store.Call {
	for i := range calls {
		switch {
		case calls[i].Verb == store.Check || calls[i].Verb == store.Reserve || r.IntN(4) > 0:
		case len(r.once) > 0 && r.IntN(2) == 0:
			c := cloned(r.once[r.IntN(len(r.once))])
			switch r.IntN(8) {
			case 0:
				c.Once.Member[3]++
			case 1:
				c.Once.N = 0
			case 2, 3: // without some of the ops
				if n := len(c.Ops); n > 1 {
					from := int(r.ids) % n
					c.Ops = c.Ops[from : from+1+int(r.ids/8)%(n-from)]
				}
			}
			r.ids++
			for n := range c.Ops {
				if h := c.Ops[n].Hold; c.Verb == store.Take && h != nil && h.ID != [12]byte{} {
					h.ID = [12]byte{0: 9}
					binary.BigEndian.PutUint64(h.ID[4:], r.ids)
				}
			}
			calls[i] = c
		default:
			r.ids++
			calls[i].Once = record(fmt.Sprint("call", r.ids), "digest", []time.Duration{time.Second, time.Minute, 24 * time.Hour}[r.IntN(3)])
			if r.ids%4 == 0 {
				calls[i].Once.Role = store.Look
			}
			if r.once = append(r.once, cloned(calls[i])); len(r.once) > 30 {
				r.once = slices.Delete(r.once, 0, 1)
			}
		}
	}
	return calls
}

// compareOnce fails t if one of two calls that are the same has found its record, and the other not, or another one.
func compareOnce(t testing.TB, a, b store.Call, at string) {
	t.Helper()
	if a.Once == nil || a.Err != nil {
		return
	}
	if x, y := &a.Once.Result, &b.Once.Result; (x.Before > 0) != (y.Before > 0) {
		t.Fatalf("%s: %v: got a record in one store only: %+v and %+v", at, a.Verb, *x, *y)
	} else if x.Before > 0 && (x.Allowed != y.Allowed || x.RetryAfter != y.RetryAfter) {
		t.Fatalf("%s: %v: got records that tell %+v and %+v, want the same", at, a.Verb, *x, *y)
	}
}

// cloned returns a deep copy of a call.
func cloned(c store.Call) store.Call {
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		if h := c.Ops[i].Hold; h != nil {
			own := *h
			c.Ops[i].Hold = &own
		}
	}
	if c.Once != nil {
		own := *c.Once
		own.Member = slices.Clone(own.Member)
		c.Once = &own
	}
	return c
}
