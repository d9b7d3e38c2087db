package remote

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// secret is what receipts are sealed under, first the secret for new ones. The second one is that of before the last rotation,
// and has the end 0 if there was none. The others are those that instances have used while they did not reach the servers,
// the oldest first.
type secret []ending

type ending struct {
	of    [16]byte
	until window.Instant // not of the first one
}

const secretSize = 16

// bytes returns the form of s on the servers: the secret for new receipts, and each other one with its end.
func (s secret) bytes() (b []byte) {
	for i, e := range s {
		if b = append(b, e.of[:]...); i > 0 {
			b = binary.LittleEndian.AppendUint64(b, uint64(e.until))
		}
	}
	return b
}

// readSecret returns the secret whose form is b. It reports false for other bytes.
func readSecret(b []byte) (s secret, ok bool) {
	const size = secretSize + 8
	if len(b) < secretSize || (len(b)-secretSize)%size != 0 {
		return nil, false
	}
	s = secret{{of: [secretSize]byte(b)}}
	for b = b[secretSize:]; len(b) > 0; b = b[size:] {
		s = append(s, ending{[secretSize]byte(b), window.Instant(binary.LittleEndian.Uint64(b[secretSize:]))})
	}
	return s, true
}

// rotated reports whether s was rotated.
func (s secret) rotated() bool { return len(s) > 1 && s[1].until > 0 }

// has reports whether s has the secret other, even if that has ended.
func (s secret) has(other [16]byte) bool {
	return slices.ContainsFunc(s, func(e ending) bool { return e.of == other })
}

// with returns s with the secret own of an instance, which is valid for secretKeep. If there are too many, the oldest one leaves.
func (s secret) with(own [16]byte, now time.Time) secret {
	next := append(secret{}, s...)
	if len(next) == 1 {
		next = append(next, ending{})
	}
	of := slices.DeleteFunc(next[2:], func(e ending) bool { return e.until <= window.At(now) })
	of = append(of, ending{own, window.At(now.Add(secretKeep))})
	return append(next[:2], of[max(0, len(of)-secretMost):]...)
}

// known is a secret, and which parts of it are valid until an instant.
type known struct {
	secret
	valid [][16]byte
	until window.Instant
}

// at returns s with what is valid of it at now.
func (s secret) at(now window.Instant) *known {
	k := &known{s, [][16]byte{s[0].of}, math.MaxInt64}
	for _, e := range s[1:] {
		if now < e.until {
			k.valid, k.until = append(k.valid, e.of), min(k.until, e.until)
		}
	}
	return k
}

// Secrets are what a store knows of the secret that its servers keep for all stores on the same
// counters. The first store that needs the secret makes it. An engine asks for it when it
// gets rules that hold and, if the servers were unavailable then, before takes that hold.
// The store reads it again from time to time, and when a receipt is sealed under
// another one: a store learns of a rotation, and a server that has lost its secret gets
// it from a store that knows it. A secret that was used while the servers' one was out of reach is added to that, so that all
// stores accept it for a day. The fields are set before the first use. It is safe for concurrent use.
type Secrets struct {
	// Agree returns the bytes of the secret that the servers keep. If they keep none, own becomes it.
	Agree func(ctx context.Context, own []byte) ([]byte, error)

	// Replace makes the servers keep next if they still keep old, and reports whether they did.
	Replace func(ctx context.Context, old, next []byte) (bool, error)

	// Background runs f in a goroutine of the store. It returns false if the store is closed.
	Background func(f func()) bool

	known atomic.Pointer[known] // nil: none yet

	mu    sync.Mutex // held while the secret is read
	next  time.Time  // when to read it again; guarded by mu
	asked time.Time  // when to read it for a receipt at the earliest; guarded by mu
	own   *[16]byte  // a secret that was used here and is to be added to that of the servers, or nil; guarded by mu
}

const (
	secretAgain = 10 * time.Second       // after it was read
	secretAsked = 100 * time.Millisecond // after it was read, for a receipt
	secretRetry = time.Second            // after it could not be read
	secretTime  = time.Second            // in which it is read, at most
	secretKeep  = 24 * time.Hour         // how long a secret is valid that the servers did not have
	secretMost  = 32                     // how many of these are valid at the same time
)

// List returns the secrets under which the receipts of this store are valid. The first
// one is for new receipts. The caller must
// not change the slice. Most calls ask nothing. A call that finds no secret reads it from
// the servers, at most once a second. So does a call with again, at most ten times a second:
// a receipt is valid under none of the secrets that were returned before. While the secret is not known, List returns none, or
// the first own secret that a caller had for new receipts.
func (k *Secrets) List(again bool, own ...[16]byte) [][16]byte {
	switch {
	case again || k.known.Load() == nil:
		k.mu.Lock()
		k.learn(again)
		if k.known.Load() == nil && len(own) > 0 {
			k.own = &own[0]
			k.known.Store(secret{{of: own[0]}}.at(0))
			k.retry()
		}
		k.mu.Unlock()
	case k.mu.TryLock():
		if time.Now().Before(k.next) || !k.Background(func() {
			defer k.mu.Unlock()
			k.learn(false)
		}) {
			k.mu.Unlock()
		}
	}
	list := k.known.Load()
	if list == nil {
		return nil
	}
	if now := window.At(time.Now()); now >= list.until {
		later := list.at(now)
		k.known.CompareAndSwap(list, later)
		list = later
	}
	return list.valid
}

// learn reads the secret if it is time to. The caller holds k.mu.
func (k *Secrets) learn(asked bool) {
	now := time.Now()
	if now.Before(k.next) && (!asked || now.Before(k.asked)) {
		return
	}
	k.next, k.asked = now.Add(secretRetry), now.Add(secretRetry)
	got, err := k.agree()
	if err == nil {
		k.asked = now.Add(secretAsked)
		if mine := k.known.Load(); mine != nil && k.own == nil && !got.rotated() {
			k.own = &mine.secret[0].of // which the servers may have lost, and another store made this one
		}
		got, err = k.add(got, now)
		k.known.Store(got.at(window.At(now)))
	}
	if err != nil {
		k.retry()
		return
	}
	k.next = now.Add(secretAgain)
}

// add adds k.own, if any, to got, which the servers keep. If that fails, own is valid here only. The caller holds k.mu.
func (k *Secrets) add(got secret, now time.Time) (secret, error) {
	for range secretMost {
		if k.own == nil || got.has(*k.own) {
			k.own = nil
			return got, nil
		}
		next := got.with(*k.own, now)
		added, err := k.replace(context.Background(), got, next)
		switch {
		case added:
			k.own = nil
			fallthrough
		case err != nil:
			return next, err
		}
		if got, err = k.agree(); err != nil { // another store has changed it meanwhile
			return next, err
		}
	}
	return got.with(*k.own, now), errors.New("add a secret: other instances change it all the time")
}

// retry reads the secret again soon, if there is something to add to it. The caller holds k.mu.
func (k *Secrets) retry() {
	if k.own != nil {
		time.AfterFunc(secretRetry, func() {
			k.Background(func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.learn(false)
			})
		})
	}
}

// agree returns the secret that the servers keep. If there was none, it is the one that is known here, or a new one.
func (k *Secrets) agree() (got secret, err error) {
	own := newSecret()
	if known := k.known.Load(); known != nil {
		own = known.secret
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	b, err := k.Agree(ctx, own.bytes())
	if err != nil {
		return nil, err
	}
	got, ok := readSecret(b)
	if !ok {
		err = errors.New("the servers hold no secret that this version can read; delete it or use another prefix")
	}
	return got, err
}

// replace makes the servers keep next if they still keep old.
func (k *Secrets) replace(ctx context.Context, old, next secret) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	return k.Replace(ctx, old.bytes(), next.bytes())
}

// newSecret returns a secret that is new.
func newSecret() secret {
	s := make(secret, 1)
	_, _ = rand.Read(s[0].of[:]) // which never fails
	return s
}

// Rotate makes a new secret for receipts. Receipts of before are valid
// for keep, unless the secret is rotated once more. Secrets that other stores have added end. Other stores on the same counters learn of
// it when they get a receipt that is sealed under it, and otherwise within 10 seconds.
func (k *Secrets) Rotate(ctx context.Context, keep time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, err := k.agree()
	if err != nil {
		return fmt.Errorf("rotate the secret: %w", err)
	}
	now := time.Now()
	next := append(newSecret(), ending{old[0].of, window.At(now.Add(keep))})
	if k.own != nil && !next.has(*k.own) {
		next = next.with(*k.own, now)
	}
	rotated, err := k.replace(ctx, old, next)
	switch {
	case err != nil:
		return fmt.Errorf("rotate the secret: %w", err)
	case !rotated:
		return errors.New("rotate the secret: another instance has changed it meanwhile")
	}
	k.own = nil
	k.known.Store(next.at(window.At(now)))
	return nil
}
