package envoyrls

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A descriptor with its own limit is decided by that limit only. Its counter belongs to the
// domain, the entries and the length of the window.

// descriptorAttribute is the attribute of such a rule that has the entries.
const descriptorAttribute = "descriptor"

// lengths are the lengths of the units. A month and a year are as long as in the protocol's
// reference service.
var lengths = map[types.RateLimitUnit]time.Duration{
	types.RateLimitUnit_SECOND: time.Second,
	types.RateLimitUnit_MINUTE: time.Minute,
	types.RateLimitUnit_HOUR:   time.Hour,
	types.RateLimitUnit_DAY:    24 * time.Hour,
	types.RateLimitUnit_MONTH:  30 * 24 * time.Hour,
	types.RateLimitUnit_YEAR:   365 * 24 * time.Hour,
}

// overrides holds the rules of limits that came with calls, and the lengths of their windows.
// Its zero value is ready for use. It is safe for concurrent use.
type overrides struct {
	mu      sync.RWMutex
	known   map[override]*rule.Set                                   // guarded by mu
	lengths map[*namespace.Namespace]map[time.Duration]*atomic.Int64 // when each was used last, in Unix seconds; the maps are guarded by mu
}

// override is a limit that comes with a descriptor.
type override struct {
	rule   string // the name of its rule
	quota  uint32
	length time.Duration
}

// maxOverrides is the maximum number of cached limits. If there are more, the cache is cleared.
const maxOverrides = 4096

// maxLengths is the maximum number of different lengths in use in one namespace. Each has a
// table of keys, whose memory is more than that of a few keys.
const maxLengths = 256

// overrideOf returns the limit of descriptor i.
func overrideOf(i int, l *common.RateLimitDescriptor_RateLimitOverride) (override, error) {
	o := override{rule: stated.Descriptor, quota: l.RequestsPerUnit, length: lengths[l.Unit]}
	if o.length == 0 {
		return o, fault.Newf(at(i, "limit.unit"), "%v: want SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", l.Unit)
	}
	if l.UnitMultiplier != nil {
		times := int64(l.UnitMultiplier.Value)
		if times == 0 || times > int64(stated.Most/o.length) {
			return o, fault.Newf(at(i, "limit.unit_multiplier"), "%d of %v: want at least 1, and at most 366 days", times, l.Unit)
		}
		o.length *= time.Duration(times)
	}
	return o, nil
}

// native returns the rules of o for use with weir's own rules.
func (o override) native() (*rule.Set, error) {
	return rule.New([]rule.Rule{{
		Name: o.rule, Per: []string{domainAttribute, descriptorAttribute},
		Quota: &rule.Quota{Value: int64(o.quota)}, Window: window.Sliding(o.length),
	}}, nil)
}

// rules returns the rules of o, which comes with descriptor i of a call for ns. It calls
// make if they are not cached.
func (s *overrides) rules(ns *namespace.Namespace, i int, o override, make func() (*rule.Set, error)) (*rule.Set, error) {
	now := time.Now().Unix()
	s.mu.RLock()
	set, used := s.known[o], s.lengths[ns][o.length]
	s.mu.RUnlock()
	if used == nil {
		if used = s.use(ns, o.length, now); used == nil {
			return nil, fault.Newf(at(i, "limit"), "more than %d different lengths are in use", maxLengths)
		}
	} else if used.Load() < now {
		used.Store(now)
	}
	if set != nil {
		return set, nil
	}
	set, err := make()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[o]; known != nil {
		return known, nil
	}
	if s.known == nil || len(s.known) >= maxOverrides {
		s.known = map[override]*rule.Set{}
	}
	s.known[o] = set
	return set, nil
}

// use adds a length that is in use from now on. It returns nil if there are too many, even
// without those whose counters have expired.
func (s *overrides) use(ns *namespace.Namespace, length time.Duration, now int64) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.lengths[ns]
	if all == nil {
		for other := range s.lengths {
			if other.Gone() {
				delete(s.lengths, other)
			}
		}
		if all = map[time.Duration]*atomic.Int64{}; s.lengths == nil {
			s.lengths = map[*namespace.Namespace]map[time.Duration]*atomic.Int64{}
		}
		s.lengths[ns] = all
	}
	if used := all[length]; used != nil {
		return used
	}
	if len(all) >= maxLengths {
		maps.DeleteFunc(all, func(length time.Duration, used *atomic.Int64) bool {
			return now-used.Load() > int64(2*length/time.Second)
		})
	}
	if len(all) >= maxLengths {
		return nil
	}
	used := new(atomic.Int64)
	used.Store(now)
	all[length] = used
	return used
}
