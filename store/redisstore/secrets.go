package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// secrets are what receipts are sealed under. The secret of a prefix is at a key in
// Redis, which the first store that needs it makes. An engine asks for it when it
// gets rules that hold and, if Redis was unavailable then, before takes that hold.
// The store reads it again from time to time, and when a receipt is sealed under
// another one: a store learns of a rotation, and a server that has lost its keys gets
// the secret from a store that knows it.
type secrets struct {
	known atomic.Pointer[script.Secrets] // nil: none yet

	mu    sync.Mutex // held while the secret is read
	next  time.Time  // when to read it again; guarded by mu
	asked time.Time  // when to read it for a receipt at the earliest; guarded by mu
}

const (
	secretAgain = 10 * time.Second       // after it was read
	secretAsked = 100 * time.Millisecond // after it was read, for a receipt
	secretRetry = time.Second            // after it could not be read
	secretTime  = time.Second            // in which it is read, at most
	secretKeep  = 24 * time.Hour         // how long a secret is valid that Redis has lost
)

// Secrets returns the secrets under which the receipts of this store are valid. The first
// one is for new receipts. There are none while the secret is not known. The caller must
// not change the slice. Most calls ask nothing. A call that finds no secret reads it from
// Redis, at most once a second. So does a call with again, at most ten times a second:
// a receipt is valid under none of the secrets that were returned before.
func (s *Store) Secrets(again bool) [][16]byte {
	k := &s.secrets
	switch {
	case again || k.known.Load() == nil:
		k.mu.Lock()
		s.learn(again)
		k.mu.Unlock()
	case k.mu.TryLock():
		if time.Now().Before(k.next) || !s.background(func() {
			defer k.mu.Unlock()
			s.learn(false)
		}) {
			k.mu.Unlock()
		}
	}
	known := k.known.Load()
	switch {
	case known == nil:
		return nil
	case window.At(time.Now()) < known.Until:
		return known.List[:]
	}
	return known.List[:1]
}

// learn reads the secret if it is time to. The caller holds secrets.mu.
func (s *Store) learn(asked bool) {
	k, now := &s.secrets, time.Now()
	if now.Before(k.next) && (!asked || now.Before(k.asked)) {
		return
	}
	known := k.known.Load()
	own := known
	if known == nil {
		own = newSecrets()
	}
	k.next, k.asked = now.Add(secretRetry), now.Add(secretRetry)
	got, err := s.agree(own)
	if err != nil {
		return
	}
	k.next, k.asked = now.Add(secretAgain), now.Add(secretAsked)
	if known != nil {
		if got.List[0] == known.List[0] {
			return
		}
		if got.Until == 0 { // Redis has lost the secret, and another store made this one
			got.List[1], got.Until = known.List[0], window.At(now.Add(secretKeep))
		}
	}
	k.known.Store(&got)
}

// newSecrets returns a secret that is new.
func newSecrets() *script.Secrets {
	s := &script.Secrets{}
	_, _ = rand.Read(s.List[0][:]) // which never fails
	return s
}

// agree returns the secret in Redis, and makes own the secret if there is none.
func (s *Store) agree(own *script.Secrets) (secret script.Secrets, err error) {
	err = s.atSecret(context.Background(), func(ctx context.Context, c rueidis.Client, key string) error {
		replies := c.DoMulti(ctx,
			c.B().Set().Key(key).Value(script.EncodeSecret(own)).Nx().Build(),
			c.B().Get().Key(key).Build())
		if err := replies[0].Error(); err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
		value, err := replies[1].ToString()
		if err != nil {
			return err
		}
		secret, err = script.DecodeSecret(key, value)
		return err
	})
	return secret, err
}

// atSecret calls do with the key of the secret and the client of its node.
func (s *Store) atSecret(ctx context.Context, do func(ctx context.Context, c rueidis.Client, key string) error) error {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	key := s.codec.Names().Secret()
	return s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) error { return do(ctx, c, key) })
}

// RotateSecret makes a new secret for receipts, in Redis. Receipts of before are valid
// for keep, unless the secret is rotated once more. Other stores on the prefix learn of
// it when they get a receipt that is sealed under it, and otherwise within 10 seconds.
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	s.secrets.mu.Lock()
	defer s.secrets.mu.Unlock()
	own := s.secrets.known.Load() // for a server that has lost its keys
	if own == nil {
		own = newSecrets()
	}
	old, err := s.agree(own)
	if err != nil {
		return fmt.Errorf("rotate the secret: %w", err)
	}
	next := newSecrets()
	next.List[1], next.Until = old.List[0], window.At(time.Now().Add(keep))
	rotated := int64(0)
	err = s.atSecret(ctx, func(ctx context.Context, c rueidis.Client, key string) (err error) {
		rotated, err = c.Do(ctx, c.B().Eval().Script(script.RotateSecret).Numkeys(1).Key(key).
			Arg(script.EncodeSecret(&old), script.EncodeSecret(next)).Build()).AsInt64()
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("rotate the secret: %w", err)
	case rotated == 0:
		return errors.New("rotate the secret: another instance has rotated it meanwhile")
	}
	s.secrets.known.Store(next)
	return nil
}
