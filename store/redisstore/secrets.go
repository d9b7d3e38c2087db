package redisstore

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
	"github.com/weirhq/weir/window"
)

// secrets are what receipts are sealed under. The secret of a prefix is at a key in
// Redis, which the first store that needs it makes. An engine asks for it when it
// gets rules that hold and, if Redis was out of reach then, before takes that hold.
// The store reads it again from time to time: a server that has lost its keys gets
// the secret from a store that knows it.
type secrets struct {
	known atomic.Pointer[[][16]byte] // the newest first, two at most; nil: none yet

	mu   sync.Mutex // held while the secret is read
	next time.Time  // when to read it again; guarded by mu
}

const (
	secretAgain = 10 * time.Second // after it was read
	secretRetry = time.Second      // after it could not be read
	secretTime  = time.Second      // in which it is read, at most
)

// Secrets returns the secrets under which the receipts of this store are valid. The first
// one is for new receipts. There are none while the secret is not known. The caller must
// not change the slice. Most calls ask nothing. A call that finds no
// secret reads it from Redis, at most once a second.
func (s *Store) Secrets() [][16]byte {
	known := s.secrets.known.Load()
	if known == nil {
		s.secrets.mu.Lock()
		s.learn()
		s.secrets.mu.Unlock()
		if known = s.secrets.known.Load(); known == nil {
			return nil
		}
		return *known
	}
	if s.secrets.mu.TryLock() {
		if time.Now().Before(s.secrets.next) || !s.background(func() {
			defer s.secrets.mu.Unlock()
			s.learn()
		}) {
			s.secrets.mu.Unlock()
		}
	}
	return *known
}

// learn reads the secret if it is time to. The caller holds secrets.mu.
func (s *Store) learn() {
	now := time.Now()
	if now.Before(s.secrets.next) {
		return
	}
	own, known := [16]byte{}, s.secrets.known.Load()
	if known != nil {
		own = (*known)[0]
	} else {
		_, _ = rand.Read(own[:]) // which never fails
	}
	s.secrets.next = now.Add(secretRetry)
	got, err := s.agree(own)
	if err != nil {
		return
	}
	s.secrets.next = now.Add(secretAgain)
	switch {
	case known == nil:
		s.secrets.known.Store(&[][16]byte{got})
	case got != own:
		s.secrets.known.Store(&[][16]byte{got, own})
	}
}

// agree returns the secret in Redis, and makes own the secret if there is none.
func (s *Store) agree(own [16]byte) (secret [16]byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	key := s.codec.Names().Secret()
	err = s.ask(ctx, wire.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (window.Instant, error) {
		replies := c.DoMulti(ctx,
			c.B().Set().Key(key).Value(script.EncodeSecret(own)).Nx().Build(),
			c.B().Get().Key(key).Build())
		if err := replies[0].Error(); err != nil && !rueidis.IsRedisNil(err) {
			return 0, err
		}
		value, err := replies[1].ToString()
		if err != nil {
			return 0, err
		}
		secret, err = script.DecodeSecret(key, value)
		return 0, err
	})
	return secret, err
}
