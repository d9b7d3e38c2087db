package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/window"
)

// Keep changes the register called name, which all stores on the prefix have in common, if its version is version: it
// sets each of fields to the value beside it, or removes it if that is empty. A register without entries has the
// version 0. Keep returns the version afterwards, or 0 if another store has changed the register meanwhile. A change
// whose answer was lost may have been made. fields are different from each other, and not empty.
func (s *Store) Keep(ctx context.Context, name string, version int64, fields, values []string) (now int64, err error) {
	var a args
	for _, texts := range [...][]string{fields, values} {
		a.begin(oidBytes, len(texts))
		for _, text := range texts {
			a.value([]byte(text))
		}
	}
	arrays := a.end()
	return ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) (int64, error) {
		rows, err := read(ctx, c, s.sql.keep, append([][]byte{[]byte(name), int8Of(version)}, arrays...)...)
		if err != nil || len(rows) == 0 {
			return 0, err // another version
		}
		if slices.Contains(values, "") {
			// The removal is made; what is too old is dropped with the next one.
			_, _ = read(ctx, c, s.sql.trimKept, []byte(name))
		}
		return int64(binary.BigEndian.Uint64(rows[0][0])), nil
	})
}

// Kept returns what has changed in the register called name, at most so many fields, in the order of their
// changes, each with its value, which is empty if it was removed. since is what the last call returned as
// next, and zero in the first: the version up to which the caller has read, and the one that the register had when
// it began to. Nothing is left to read when both are equal. If again is set, the caller must first drop what it
// knows: the answer begins with the first entry, because since is zero, too old, or of a register that was lost.
func (s *Store) Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	rows, err := ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) ([][][]byte, error) {
		rows, err := read(ctx, c, s.sql.kept, []byte(name), int8Of(since[0]), int8Of(since[1]), int8Of(int64(most)))
		if err == nil && len(rows) == 0 && since[0] > 0 { // it was lost, or is hidden
			_, err = s.tables(ctx, c)
		}
		return rows, err
	})
	if err != nil || len(rows) == 0 {
		return nil, nil, next, since[0] > 0, err
	}
	for _, row := range rows[1:] {
		fields, values = append(fields, string(row[0])), append(values, string(row[1]))
	}
	version := int64(binary.BigEndian.Uint64(rows[0][2]))
	next, again = [2]int64{version, version}, len(rows[0][1]) > 0
	if len(fields) == most {
		next[0] = int64(binary.BigEndian.Uint64(rows[most][2]))
		if !again {
			next[1] = since[1]
		}
	}
	return fields, values, next, again, nil
}

// logSize is the maximum number of entries of a log.
const logSize = 10_000

// Log adds entries, at most a few hundred, to a log that is stored with the counters for all stores on the prefix. It
// returns the newest n of the log but for the newest skip, the oldest one first. A log has the newest 10,000 entries
// that are not older than age. at has the instant of each entry. An entry that is in the log already is not added
// again, so that a call that failed can be repeated.
func (s *Store) Log(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, skip, n int) ([]string, error) {
	var a args
	if len(entries) > 0 {
		a.begin(oidInt8, len(entries))
		for i := range entries {
			a.value(int8Of(int64(at[i])))
		}
		a.begin(oidBytes, len(entries))
		for _, e := range entries {
			digest := sha256.Sum256([]byte(e))
			a.value(digest[:16])
		}
		a.begin(oidBytes, len(entries))
		for _, e := range entries {
			a.value([]byte(e))
		}
	}
	arrays := a.end()
	return ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) (newest []string, err error) {
		if len(entries) > 0 {
			if _, err = read(ctx, c, s.sql.addLog, append([][]byte{[]byte(name)}, arrays...)...); err != nil {
				return nil, err
			}
			if _, err = read(ctx, c, s.sql.trimLog, []byte(name), int8Of(age.Microseconds()), int8Of(logSize-1)); err != nil {
				return nil, err
			}
		}
		if n <= 0 {
			return nil, nil
		}
		rows, err := read(ctx, c, s.sql.readLog, []byte(name), int8Of(int64(n)), int8Of(int64(skip)))
		for _, row := range rows {
			newest = append(newest, string(row[0]))
		}
		return newest, err
	})
}

// int8Of returns a parameter of the type int8.
func int8Of(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Secrets returns the secrets under which the receipts of this store are valid; see
// [remote.Secrets]. An engine looks for this method and the next one (hook.Keyed).
func (s *Store) Secrets(again bool, own ...[16]byte) [][16]byte {
	return s.secrets.List(again, own...)
}

// RotateSecret makes a new secret for receipts, in the database; see [remote.Secrets].
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	return s.secrets.Rotate(ctx, keep)
}

// agree returns the secret in the database, and makes own the secret if there is none.
func (s *Store) agree(ctx context.Context, own []byte) ([]byte, error) {
	return ask(ctx, s, func(ctx context.Context, c *pgconn.PgConn) ([]byte, error) {
		secret, err := s.meta(ctx, c, "secret")
		if err != nil || secret != nil { // a database that is read-only answers reads
			return secret, err
		}
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
