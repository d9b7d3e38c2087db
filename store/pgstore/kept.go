package pgstore

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// Keep changes the register called name, which all stores on the prefix have in common, if its
// version is version: it sets each of fields to the value beside it, or removes it if that is empty.
// A register without entries has the version 0. Keep returns the version afterwards, or 0 if
// another store has changed the register meanwhile. A change whose answer was lost may have been made. fields are different from each other, and not empty.
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
		return read(ctx, c, s.sql.kept, []byte(name), int8Of(since[0]), int8Of(since[1]), int8Of(int64(most)))
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
