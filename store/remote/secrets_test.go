package remote_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// place is where stores keep the secret.
type place struct {
	mu    sync.Mutex
	value []byte // guarded by mu; nil: none
	away  bool   // guarded by mu
	full  bool   // guarded by mu
}

// set changes the place.
func (p *place) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// lose makes the place lose the secret.
func (p *place) lose() { p.set(func() { p.value = nil }) }

// secrets returns what another store knows of the secret.
func (p *place) secrets() *remote.Secrets {
	k := &remote.Secrets{Background: func(f func()) bool { go f(); return true }}
	k.Agree = func(_ context.Context, own []byte) ([]byte, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.away {
			return nil, errors.New("away")
		}
		if p.value == nil {
			p.value = own
		}
		return p.value, nil
	}
	k.Replace = func(_ context.Context, old, next []byte) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.full {
			return false, errors.New("full")
		}
		if !slices.Equal(p.value, old) {
			return false, nil
		}
		p.value = next
		return true, nil
	}
	return k
}

// All stores have one secret; a rotation keeps the old one valid for a time.
func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p place
		one, two := p.secrets(), p.secrets()
		before := slices.Clone(one.List(false))
		if len(before) != 1 || !slices.Equal(two.List(false), before) {
			t.Fatalf("got %v and %v, want one secret", before, two.List(false))
		}
		if err := one.Rotate(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		after := slices.Clone(one.List(false))
		if len(after) != 2 || after[1] != before[0] || after[0] == before[0] {
			t.Errorf("got %v, want a new secret and the old one", after)
		}
		time.Sleep(100 * time.Millisecond)
		if got := two.List(true); !slices.Equal(got, after) {
			t.Errorf("asked again: got %v, want %v", got, after)
		}
		time.Sleep(time.Minute)
		if got := two.List(false); !slices.Equal(got, after[:1]) {
			t.Errorf("later: got %v, want %v", got, after[:1])
		}
		synctest.Wait()
	})
}

// A place that has lost the secret gets it from a store that knows it, by itself. Stores that find another one
// accept both.
func TestSecretsAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p place
		s := p.secrets()
		before := slices.Clone(s.List(false))
		p.lose()
		time.Sleep(11 * time.Second)
		s.List(false) // reads it in the background
		synctest.Wait()
		if got := p.secrets().List(false); !slices.Equal(got, before) {
			t.Errorf("after a loss: got %v, want %v", got, before)
		}
		p.lose()
		other := slices.Clone(p.secrets().List(false))
		time.Sleep(11 * time.Second)
		s.List(false)
		synctest.Wait()
		if got := s.List(false); len(got) != 2 || got[0] != other[0] || got[1] != before[0] {
			t.Errorf("after a loss that another store mended: got %v, want both", got)
		}
		if got := p.secrets().List(false); len(got) != 2 || got[1] != before[0] {
			t.Errorf("at a new store: got %v, want both", got)
		}
	})
}

// While the secret is out of reach there is none, and it is asked for once a second at most.
func TestSecretsOutOfReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := place{away: true}
		s := p.secrets()
		if got := s.List(true); got != nil {
			t.Errorf("got %v, want none", got)
		}
		p.set(func() { p.away = false })
		if got := s.List(true); got != nil {
			t.Errorf("at once: got %v, want none", got)
		}
		time.Sleep(time.Second)
		if got := s.List(false); len(got) != 1 {
			t.Errorf("a second later: got %v, want one", got)
		}
		if err := s.Rotate(t.Context(), time.Hour); err != nil || len(s.List(false)) != 2 {
			t.Errorf("got %v", err)
		}
		p.set(func() { p.value = []byte("swordfish") })
		if err := s.Rotate(t.Context(), time.Hour); err == nil {
			t.Error("what is no secret was replaced")
		}
	})
}

// A secret that a store has used while the servers were out of reach becomes valid at all stores when they are back, for a day.
// That of a store which has not used it does not.
func TestSecretsOfAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p place
		known := p.secrets()
		shared := known.List(false)[0]
		p.set(func() { p.away = true })
		own := [16]byte{1}
		s, idle := p.secrets(), p.secrets()
		if got := idle.List(false); got != nil {
			t.Errorf("got %v, want none", got)
		}
		for _, other := range [][16]byte{own, {2}} { // that of the first caller is used
			if got := s.List(false, other); !slices.Equal(got, [][16]byte{own}) {
				t.Errorf("got %v, want the own secret", got)
			}
		}
		if got := known.List(false, [16]byte{3}); got[0] != shared || len(got) != 1 {
			t.Errorf("got %v, want the secret that is known", got)
		}
		time.Sleep(5500 * time.Millisecond)
		p.set(func() { p.away = false })
		time.Sleep(time.Second)
		synctest.Wait()
		want := [][16]byte{shared, own}
		for i, of := range []*remote.Secrets{known, s, idle, p.secrets()} {
			if got := of.List(true); !slices.Equal(got, want) {
				t.Errorf("store %d: got %v, want %v", i, got, want)
			}
		}
		time.Sleep(24 * time.Hour)
		for i, of := range []*remote.Secrets{known, s, p.secrets()} {
			if got := of.List(false); !slices.Equal(got, want[:1]) {
				t.Errorf("a day later, store %d: got %v, want %v", i, got, want[:1])
			}
		}
		synctest.Wait()
	})
}

// Stores that start in the same outage all add their secrets. Those of the last ones are valid. A rotation ends them.
func TestSecretsOfManyStores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p place
		known := p.secrets()
		shared := known.List(false)[0]
		outage := func(first, last byte) {
			p.set(func() { p.away = true })
			for i := first; i <= last; i++ {
				go p.secrets().List(false, [16]byte{i})
			}
			synctest.Wait()
			p.set(func() { p.away = false })
			time.Sleep(time.Second)
			synctest.Wait()
		}
		outage(1, 20)
		got := slices.Clone(known.List(true))
		if len(got) != 21 || got[0] != shared {
			t.Errorf("got %v, want 21 secrets", got)
		}
		outage(21, 40)
		if got = slices.Clone(known.List(true)); len(got) != 33 || got[0] != shared {
			t.Errorf("got %v, want the last 32 secrets with the first", got)
		}
		for i := byte(21); i <= 40; i++ {
			if !slices.Contains(got, [16]byte{i}) {
				t.Errorf("got %v, want %d", got, i)
			}
		}
		if err := known.Rotate(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got = slices.Clone(known.List(false)); len(got) != 2 || got[1] != shared {
			t.Errorf("rotated: got %v, want two", got)
		}
		outage(41, 41)
		time.Sleep(time.Hour)
		if got = p.secrets().List(false); len(got) != 2 || got[1] != [16]byte{41} {
			t.Errorf("after an outage: got %v, want two", got)
		}
		synctest.Wait()
	})
}

// Without another secret the own one becomes that of all stores. One that the servers cannot take yet is valid here, and added
// when they can, also by a rotation.
func TestSecretsAreAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := place{away: true}
		own := [16]byte{1}
		s := p.secrets()
		s.List(false, own)
		p.set(func() { p.away = false })
		time.Sleep(time.Second)
		synctest.Wait()
		for _, of := range []*remote.Secrets{s, p.secrets()} {
			if got := of.List(false); !slices.Equal(got, [][16]byte{own}) {
				t.Errorf("got %v, want %v", got, own)
			}
		}
		for _, end := range []func(s *remote.Secrets) error{
			func(*remote.Secrets) error { time.Sleep(time.Second); synctest.Wait(); return nil },
			func(s *remote.Secrets) error { return s.Rotate(t.Context(), time.Hour) },
		} {
			p.set(func() { p.away, p.full = true, true })
			late := p.secrets()
			other := [16]byte{2, byte(len(p.value))}
			late.List(false, other)
			p.set(func() { p.away = false })
			time.Sleep(time.Second)
			synctest.Wait()
			if got := late.List(false); got[0] != own || !slices.Contains(got, other) {
				t.Errorf("at a place that is full: got %v, want %v and %v", got, own, other)
			}
			p.set(func() { p.full = false })
			if err := end(late); err != nil {
				t.Fatal(err)
			}
			for i, of := range []*remote.Secrets{late, p.secrets()} {
				if got := of.List(false); !slices.Contains(got, own) || !slices.Contains(got, other) {
					t.Errorf("added, store %d: got %v, want %v and %v", i, got, own, other)
				}
			}
		}
	})
}
