package storetest

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Set makes hits the ones that count, whatever was there, and none of them is a strike. Where holds
// are alive, or the key is banned, it changes nothing.
func setsHits(s *stage) {
	limited := map[string]store.Op{
		"sliding": hit("sliding", hourly(5), "k"),
		"groups":  hit("groups", window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Hour)}), "k"),
		"fixed":   hit("fixed", window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour)}), "k"),
		"cells":   hit("cells", window.MustCompile(window.Limit{Quota: 5, Window: window.Cells(time.Hour, 4)}), "k"),
		"aligned": hit("aligned", window.MustCompile(window.Limit{Quota: 5, Window: window.Aligned(time.Hour)}), "k"),
		"bucket":  hit("bucket", window.MustCompile(window.Limit{Quota: 5, Window: window.Bucket(time.Hour, 5)}), "k"),
		"ever":    hit("ever", window.MustCompile(window.Limit{Quota: 5, Window: window.Ever()}), "k"),
		"bans":    hit("bans", banning(5), "k"),
	}
	for name, op := range limited {
		if r := s.one(store.Set, times(3, op)); r.Before != 0 || r.Used != 3 {
			s.Errorf("%s, a new key: got %+v, want 3 used", name, r)
		}
		s.one(store.Take, times(2, op))
		if r := s.one(store.Set, times(1, op)); r.Before != 5 || r.Used != 1 {
			s.Errorf("%s: got %+v, want 5 before and 1 used", name, r)
		}
		s.used(1, op)
		if r := s.one(store.Set, times(0, op)); r.Used != 0 {
			s.Errorf("%s: got %+v, want none used", name, r)
		}
		if r := s.one(store.Set, times(5000, op)); r.Used < 5 || r.Struck || r.Banned {
			s.Errorf("%s, past the quota: got %+v, want at least 5 used, and no strike", name, r)
		}
		if r := s.one(store.Check, op); r.Allowed || r.Banned {
			s.Errorf("%s: got %+v, want a denial", name, r)
		}
	}
	for _, step := range []struct {
		at   time.Duration
		verb store.Verb
		n    int64
		used int64
	}{
		{time.Hour, store.Take, 5, 5}, {90 * time.Minute, store.Set, 1, 1},
		{145 * time.Minute, store.Check, 1, 1}, // what was there before leaves nothing behind
		{3 * time.Hour, store.Check, 1, 0},
	} {
		s.at(step.at)
		for _, name := range []string{"sliding", "groups", "cells", "fixed"} {
			op := times(step.n, limited[name])
			op.Key = []byte("later")
			if r := s.one(step.verb, op); r.Used != step.used {
				s.Errorf("%s, %v after %v: got %+v, want %d used", name, step.verb, step.at, r, step.used)
			}
		}
	}
	hold := hit("hold", holding(5), "k")
	s.one(store.Take, named("a", hold))
	if r := s.one(store.Set, times(3, hold)); !r.Held || r.Used != 1 {
		s.Errorf("with a hold: got %+v, want nothing changed", r)
	}
	ban := hit("ban", banning(1), "k")
	s.one(store.Take, ban)
	s.one(store.Take, ban)
	if r := s.one(store.Set, times(0, ban)); !r.Banned {
		s.Errorf("with a ban: got %+v, want nothing changed", r)
	}
}

// The end of a ban leaves strikes and holds.
func liftsBans(s *stage) {
	op := hit("s", banning(1), "k")
	if r := s.one(store.Unban, op); r.Banned || r.Used != 0 {
		s.Errorf("a new key: got %+v", r)
	}
	s.one(store.Take, op)
	if r := s.one(store.Unban, op); r.Used != 1 {
		s.Errorf("no ban: got %+v, want the hit to stay", r)
	}
	if r := s.one(store.Take, op); !r.Banned {
		s.Fatalf("got %+v, want a ban", r)
	}
	s.at(time.Second)
	if r := s.one(store.Unban, op); r.Banned || r.Used != 0 {
		s.Errorf("got %+v, want no ban", r)
	}
	if r := s.read(op); r.Strikes != 1 || r.BannedUntil != 0 {
		s.Errorf("got %+v, want a strike and no ban", r)
	}
	if r := s.one(store.Take, op); !r.Allowed {
		s.Errorf("a take after it: got %+v, want it admitted", r)
	}
}
