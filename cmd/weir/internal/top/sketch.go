package top

import (
	"container/heap"
	"math"
)

// Sketch counts the most frequent keys of a stream with the algorithm
// Space-Saving. Make one with [NewSketch]. It is not safe for concurrent use.
//
// With k keys and a sum N of all counts:
//
//   - the true count of a key in the sketch is at most its Count and at least
//     Count - Error;
//   - the true count of any other key is at most Min, and Min ≤ N/k.
type Sketch struct {
	k     int
	slots []slot
	heap  []int32 // slots by count, the lowest at the root
	index map[string]int32
	total int64

	marked bool // some entry is, or was
}

// slot is one key. Invariant: heap[at] is the slot's number.
type slot struct {
	Entry
	at int32
}

// Entry is one key of a [Sketch].
type Entry struct {
	Key   string
	Count int64 // at least the true count
	Error int64 // Count is at most this much too high

	Override bool // the last mark: the key has the quota of an override
}

// NewSketch returns a sketch for k keys, at least 1. Its memory grows with the
// keys that it holds.
func NewSketch(k int) *Sketch {
	return &Sketch{k: max(k, 1), index: make(map[string]int32)}
}

// Add adds n, which must be positive, to the count of key. It returns the copy
// of key that it keeps. Sums end at [math.MaxInt64].
func (s *Sketch) Add(key []byte, n int64) string {
	s.total = plus(s.total, n)
	at, known := s.index[string(key)]
	switch {
	case known:
	case len(s.slots) < s.k:
		at = int32(len(s.slots))
		s.slots = append(s.slots, slot{Entry: Entry{Key: string(key)}})
		heap.Push((*byCount)(s), at)
		s.index[s.slots[at].Key] = at
	default:
		at = s.heap[0]
		lowest := &s.slots[at].Entry
		delete(s.index, lowest.Key)
		lowest.Key, lowest.Error, lowest.Override = string(key), lowest.Count, false
		s.index[lowest.Key] = at
	}
	e := &s.slots[at]
	e.Count = plus(e.Count, n)
	heap.Fix((*byCount)(s), int(e.at))
	return e.Key
}

// Mark marks key, which Add has returned, as one with the quota of an override, or not.
func (s *Sketch) Mark(key string, override bool) {
	if override || s.marked {
		s.marked = true
		s.slots[s.index[key]].Override = override
	}
}

// Total returns the sum of all counts that were added.
func (s *Sketch) Total() int64 { return s.total }

// Min returns the highest possible count of a key that is not in s.
func (s *Sketch) Min() int64 {
	if len(s.slots) < s.k {
		return 0
	}
	return s.slots[s.heap[0]].Count
}

// Of returns the entry of key. For a key that is not in s, Count and Error are
// Min.
func (s *Sketch) Of(key string) Entry {
	if at, ok := s.index[key]; ok {
		return s.slots[at].Entry
	}
	least := s.Min()
	return Entry{Key: key, Count: least, Error: least}
}

// Reset empties s, and sets its capacity to k keys.
func (s *Sketch) Reset(k int) {
	s.k = max(k, 1)
	clear(s.slots) // so that no key is kept
	s.slots, s.heap, s.total, s.marked = s.slots[:0], s.heap[:0], 0, false
	clear(s.index)
}

// byCount is a Sketch as a heap of its slots.
type byCount Sketch

func (s *byCount) Len() int           { return len(s.heap) }
func (s *byCount) Less(a, b int) bool { return s.slots[s.heap[a]].Count < s.slots[s.heap[b]].Count }
func (s *byCount) Pop() any           { panic("a sketch replaces its lowest key") }

// Push implements [heap.Interface].
func (s *byCount) Push(x any) {
	s.slots[x.(int32)].at = int32(len(s.heap))
	s.heap = append(s.heap, x.(int32))
}

func (s *byCount) Swap(a, b int) {
	s.heap[a], s.heap[b] = s.heap[b], s.heap[a]
	s.slots[s.heap[a]].at, s.slots[s.heap[b]].at = int32(a), int32(b)
}

// plus returns a + b, neither of which is negative, or the largest number.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
