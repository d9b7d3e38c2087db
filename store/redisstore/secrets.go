package redisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// Secrets returns the secrets under which the receipts of this store are valid; see
// [remote.Secrets]. An engine looks for this method and the next one (hook.Keyed).
func (s *Store) Secrets(again bool) [][16]byte { return s.secrets.List(again) }

// RotateSecret makes a new secret for receipts, in Redis; see [remote.Secrets].
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	return s.secrets.Rotate(ctx, keep)
}

// agree returns the secret in Redis, and makes own the secret if there is none.
func (s *Store) agree(ctx context.Context, own []byte) (secret []byte, err error) {
	err = s.atSecret(ctx, func(ctx context.Context, c rueidis.Client, key string) error {
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

// replaceSecret makes next the secret if old still is.
func (s *Store) replaceSecret(ctx context.Context, old, next []byte) (replaced bool, err error) {
	err = s.atSecret(ctx, func(ctx context.Context, c rueidis.Client, key string) error {
		n, err := c.Do(ctx, c.B().Eval().Script(script.RotateSecret).Numkeys(1).Key(key).
			Arg(script.EncodeSecret(old), script.EncodeSecret(next)).Build()).AsInt64()
		replaced = n > 0
		return err
	})
	return replaced, err
}

// atSecret calls do with the key of the secret and the client of its node.
func (s *Store) atSecret(ctx context.Context, do func(ctx context.Context, c rueidis.Client, key string) error) error {
	key := s.codec.Names().Secret()
	return s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) error { return do(ctx, c, key) })
}
