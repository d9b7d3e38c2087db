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
}

// lose makes the place lose the secret.
func (p *place) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value = nil
}

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
		p.mu.Lock()
		p.away = false
		p.mu.Unlock()
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
		p.mu.Lock()
		p.value = []byte("swordfish")
		p.mu.Unlock()
		if err := s.Rotate(t.Context(), time.Hour); err == nil {
			t.Error("what is no secret was replaced")
		}
	})
}
