package remote

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// secret is what receipts are sealed under, and the secret before it.
type secret struct {
	list  [2][16]byte
	until window.Instant // of the second one; 0: there is none
}

// bytes returns the form of s on the servers: 16 bytes, and if the secret was rotated the 16 bytes of the one
// before and the instant until which that is valid.
func (s *secret) bytes() (b []byte) {
	if b = append(b, s.list[0][:]...); s.until > 0 {
		b = binary.LittleEndian.AppendUint64(append(b, s.list[1][:]...), uint64(s.until))
	}
	return b
}

// read sets s to the secret whose form is b. It reports false for other bytes.
func (s *secret) read(b []byte) bool {
	if len(b) != 16 && len(b) != 40 {
		return false
	}
	copy(s.list[0][:], b)
	if len(b) > 16 {
		copy(s.list[1][:], b[16:])
		s.until = window.Instant(binary.LittleEndian.Uint64(b[32:]))
	}
	return true
}

// Secrets are what a store knows of the secret that its servers keep for all stores on the same
// counters. The first store that needs the secret makes it. An engine asks for it when it
// gets rules that hold and, if the servers were unavailable then, before takes that hold.
// The store reads it again from time to time, and when a receipt is sealed under
// another one: a store learns of a rotation, and a server that has lost its secret gets
// it from a store that knows it. The fields are set before the first use. It is safe for concurrent use.
type Secrets struct {
	// Agree returns the bytes of the secret that the servers keep. If they keep none, own becomes it.
	Agree func(ctx context.Context, own []byte) ([]byte, error)

	// Replace makes the servers keep next if they still keep old, and reports whether they did.
	Replace func(ctx context.Context, old, next []byte) (bool, error)

	// Background runs f in a goroutine of the store. It returns false if the store is closed.
	Background func(f func()) bool

	known atomic.Pointer[secret] // nil: none yet

	mu    sync.Mutex // held while the secret is read
	next  time.Time  // when to read it again; guarded by mu
	asked time.Time  // when to read it for a receipt at the earliest; guarded by mu
}

const (
	secretAgain = 10 * time.Second       // after it was read
	secretAsked = 100 * time.Millisecond // after it was read, for a receipt
	secretRetry = time.Second            // after it could not be read
	secretTime  = time.Second            // in which it is read, at most
	secretKeep  = 24 * time.Hour         // how long a secret is valid that the servers have lost
)

// List returns the secrets under which the receipts of this store are valid. The first
// one is for new receipts. There are none while the secret is not known. The caller must
// not change the slice. Most calls ask nothing. A call that finds no secret reads it from
// the servers, at most once a second. So does a call with again, at most ten times a second:
// a receipt is valid under none of the secrets that were returned before.
func (k *Secrets) List(again bool) [][16]byte {
	switch {
	case again || k.known.Load() == nil:
		k.mu.Lock()
		k.learn(again)
		k.mu.Unlock()
	case k.mu.TryLock():
		if time.Now().Before(k.next) || !k.Background(func() {
			defer k.mu.Unlock()
			k.learn(false)
		}) {
			k.mu.Unlock()
		}
	}
	known := k.known.Load()
	switch {
	case known == nil:
		return nil
	case window.At(time.Now()) < known.until:
		return known.list[:]
	}
	return known.list[:1]
}

// learn reads the secret if it is time to. The caller holds k.mu.
func (k *Secrets) learn(asked bool) {
	now := time.Now()
	if now.Before(k.next) && (!asked || now.Before(k.asked)) {
		return
	}
	known := k.known.Load()
	own := known
	if known == nil {
		own = newSecret()
	}
	k.next, k.asked = now.Add(secretRetry), now.Add(secretRetry)
	got, err := k.agree(own)
	if err != nil {
		return
	}
	k.next, k.asked = now.Add(secretAgain), now.Add(secretAsked)
	if known != nil {
		if got.list[0] == known.list[0] {
			return
		}
		if got.until == 0 { // the servers have lost the secret, and another store made this one
			got.list[1], got.until = known.list[0], window.At(now.Add(secretKeep))
		}
	}
	k.known.Store(&got)
}

// newSecret returns a secret that is new.
func newSecret() *secret {
	s := &secret{}
	_, _ = rand.Read(s.list[0][:]) // which never fails
	return s
}

// agree returns the secret that the servers keep, which is own if there was none.
func (k *Secrets) agree(own *secret) (got secret, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	b, err := k.Agree(ctx, own.bytes())
	if err == nil && !got.read(b) {
		err = errors.New("the servers hold no secret that this version can read; delete it or use another prefix")
	}
	return got, err
}

// Rotate makes a new secret for receipts. Receipts of before are valid
// for keep, unless the secret is rotated once more. Other stores on the same counters learn of
// it when they get a receipt that is sealed under it, and otherwise within 10 seconds.
func (k *Secrets) Rotate(ctx context.Context, keep time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.known.Load() // for a server that has lost its keys
	if own == nil {
		own = newSecret()
	}
	old, err := k.agree(own)
	if err != nil {
		return fmt.Errorf("rotate the secret: %w", err)
	}
	next := newSecret()
	next.list[1], next.until = old.list[0], window.At(time.Now().Add(keep))
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	rotated, err := k.Replace(ctx, old.bytes(), next.bytes())
	switch {
	case err != nil:
		return fmt.Errorf("rotate the secret: %w", err)
	case !rotated:
		return errors.New("rotate the secret: another instance has rotated it meanwhile")
	}
	k.known.Store(next)
	return nil
}
