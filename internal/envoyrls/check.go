package envoyrls

import (
	"fmt"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Bounds of one call.
const (
	maxDescriptors = 1000
	maxEntries     = 64
	maxKey         = 1 << 10 // bytes, of the domain and of a key
	maxValue       = 8 << 10 // bytes
)

// check returns what is wrong with a call, as a [*fault.Fault] with the place.
func check(in *rls.RateLimitRequest) error {
	switch n := len(in.Descriptors); {
	case in.Domain == "":
		return fault.Newf("domain", "is missing")
	case len(in.Domain) > maxKey:
		return fault.Newf("domain", "has %d bytes: want at most %d", len(in.Domain), maxKey)
	case n == 0:
		return fault.Newf("descriptors", "are missing: want at least one")
	case n > maxDescriptors:
		return fault.Newf("descriptors", "are %d: want at most %d", n, maxDescriptors)
	}
	for i, d := range in.Descriptors {
		if err := checkDescriptor(i, d); err != nil {
			return err
		}
	}
	return nil
}

func checkDescriptor(i int, d *common.RateLimitDescriptor) error {
	switch n := len(d.GetEntries()); {
	case n == 0:
		return fault.Newf(at(i, "entries"), "are missing: want at least one")
	case n > maxEntries:
		return fault.Newf(at(i, "entries"), "are %d: want at most %d", n, maxEntries)
	}
	for k, e := range d.Entries {
		switch {
		case e.GetKey() == "":
			return fault.Newf(at(i, fmt.Sprintf("entries[%d].key", k)), "is missing")
		case len(e.Key) > maxKey:
			return fault.Newf(at(i, fmt.Sprintf("entries[%d].key", k)), "has %d bytes: want at most %d", len(e.Key), maxKey)
		case len(e.Value) > maxValue:
			return fault.Newf(at(i, fmt.Sprintf("entries[%d].value", k)), "has %d bytes: want at most %d", len(e.Value), maxValue)
		}
	}
	if n := d.HitsAddend.GetValue(); n > uint64(window.MaxHits) {
		return fault.Newf(at(i, "hits_addend"), "%d: want at most %d", n, window.MaxHits)
	}
	return nil
}

// at returns the path of a field of descriptor i.
func at(i int, field string) string { return fmt.Sprintf("descriptors[%d].%s", i, field) }

// hitsOf returns the hits of a descriptor: its own, or those of the call, or 1. It
// reports whether they are 0, which makes the descriptor a check.
func hitsOf(in *rls.RateLimitRequest, d *common.RateLimitDescriptor) (hits int64, check bool) {
	if d.HitsAddend != nil {
		return int64(d.HitsAddend.Value), d.HitsAddend.Value == 0
	}
	return max(int64(in.HitsAddend), 1), false
}
