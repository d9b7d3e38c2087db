package replay_test

import (
	"time"
)

// exactWindow holds the hits of one key. It forgets nothing and goes through
// all of its hits each time. An instant earlier than one already counted counts
// as that one.
type exactWindow interface {
	fits(l exactLine, hits int64) bool
	count(l exactLine, hits int64)
}

// later returns the later of two instants.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// slidingHits are hits in groups of ⌈quota/100⌉, oldest first. Only the last
// group may be partly filled; a hit that joins it gives it its own date. A hit
// is inside while its group's date is. Groups of one are exact.
type slidingHits struct {
	length time.Duration
	quota  int64
	dates  []time.Time
	sizes  []int64
	last   time.Time
}

func exactSliding(length time.Duration) func(int64) exactWindow {
	return func(quota int64) exactWindow { return &slidingHits{length: length, quota: quota} }
}

func (s *slidingHits) fits(l exactLine, hits int64) bool {
	edge := later(l.at, s.last).Add(-s.length)
	used := hits
	for i, date := range s.dates {
		if date.After(edge) {
			used += s.sizes[i]
		}
	}
	return used <= s.quota
}

func (s *slidingHits) count(l exactLine, hits int64) {
	group := (s.quota + 99) / 100
	s.last = later(l.at, s.last)
	edge := s.last.Add(-s.length)
	for range hits {
		n := len(s.dates) - 1
		if n < 0 || s.sizes[n] == group || !s.dates[n].After(edge) {
			s.dates, s.sizes = append(s.dates, s.last), append(s.sizes, 1)
			continue
		}
		s.dates[n] = s.last
		s.sizes[n]++
	}
}

// memberUses are the members that were used, and when last. A member that is
// inside is free.
type memberUses struct {
	length time.Duration
	quota  int64
	used   map[string]time.Time
	last   time.Time
}

func exactMembers(length time.Duration) func(int64) exactWindow {
	return func(quota int64) exactWindow {
		return &memberUses{length: length, quota: quota, used: map[string]time.Time{}}
	}
}

func (m *memberUses) fits(l exactLine, _ int64) bool {
	edge := later(l.at, m.last).Add(-m.length)
	inside := int64(0)
	for _, when := range m.used {
		if when.After(edge) {
			inside++
		}
	}
	return inside < m.quota || m.used[l.path].After(edge)
}

func (m *memberUses) count(l exactLine, _ int64) {
	m.last = later(l.at, m.last)
	m.used[l.path] = m.last
}

// dayHits are the hits by date in a time zone. Zero hits always fit.
type dayHits struct {
	zone  *time.Location
	quota int64
	hits  map[string]int64 // by date
	last  string           // date
}

func exactDay(zone string) func(int64) exactWindow {
	return func(quota int64) exactWindow {
		location, err := time.LoadLocation(zone)
		if err != nil {
			panic(err)
		}
		return &dayHits{zone: location, quota: quota, hits: map[string]int64{}}
	}
}

func (d *dayHits) date(at time.Time) string { return max(at.In(d.zone).Format(time.DateOnly), d.last) }

func (d *dayHits) fits(l exactLine, hits int64) bool {
	return hits == 0 || d.hits[d.date(l.at)]+hits <= d.quota
}

func (d *dayHits) count(l exactLine, hits int64) {
	if hits > 0 {
		d.last = d.date(l.at)
		d.hits[d.last] += hits
	}
}
