package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Secrets returns the secrets under which the receipts of this store are valid; see
// [remote.Secrets]. An engine looks for this method and the next one (hook.Keyed).
func (s *Store) Secrets(again bool) [][16]byte { return s.secrets.List(again) }

// RotateSecret makes a new secret for receipts, in the database; see [remote.Secrets].
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	return s.secrets.Rotate(ctx, keep)
}

// agree returns the secret in the database, and makes own the secret if there is none.
func (s *Store) agree(ctx context.Context, own []byte) ([]byte, error) {
	return ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) ([]byte, error) {
		if _, err := read(ctx, c, s.sql.makeSecret, own); err != nil {
			return nil, err
		}
		return s.meta(ctx, c, "secret")
	})
}

// replaceSecret makes next the secret if old still is.
func (s *Store) replaceSecret(ctx context.Context, old, next []byte) (bool, error) {
	return ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) (bool, error) {
		rows, err := read(ctx, c, s.sql.replaceSecret, old, next)
		return len(rows) > 0, err
	})
}
