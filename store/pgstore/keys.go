package pgstore

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

const (
	// keysPage is how many rows of the table, of all rules, one statement looks at: fewer if their states could have
	// more than keysBytes together.
	keysPage, keysBytes = 2000, 16 << 20

	pageTimeout = 10 * time.Second

	// writersFor is how long a page waits for transactions at most, and writersEvery how often it looks.
	writersFor   = 2 * time.Second
	writersEvery = 2 * time.Millisecond

	// maxExportedName is the most bytes of the name of a row whose limit has Export:
	// its key is read back from it.
	maxExportedName = 2000
)

// Keys calls found for some of the keys in the space of op, with their states under its limit at one instant each. It
// begins behind the position after, nil at first, and returns the position to go on from, nil at the end: keys that
// are there all the time are found once. It reads the table in the order of its primary key, without locks on rows,
// after the transactions have ended that may have decided before the instant: a period that is closed then does not
// change any more. key is nil for a row whose name does not have the whole key, because the key has a NUL or, without
// [window.Limit.Export] when the row was made, another control character, is no UTF-8, has values with more than six
// commas, or is too long: the name has at most 2,000 bytes, or about 120 without Export. found must not keep its
// arguments.
func (s *Store) Keys(ctx context.Context, op *store.Op, after []byte, found func(key []byte, state window.State, now window.Instant)) (next []byte, err error) {
	prefix, most := asText(prefixOf(op)), min(keysPage, max(1, keysBytes/(8*op.Limit.MaxWords())))
	type page struct {
		at   window.Instant
		rows [][][]byte
	}
	got, err := ask(remote.WithTimeout(ctx, pageTimeout), s, func(ctx context.Context, c *pgconn.PgConn) (p page, err error) {
		if p.at, err = s.settled(ctx, c); err == nil {
			p.rows, err = read(ctx, c, s.sql.keys, append([]byte{}, after...), []byte(prefix), int8Of(int64(most)))
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	now := got.at
	if s.clock != nil {
		now = s.clock()
	}
	var state window.State
	for _, r := range got.rows {
		if next = append(next[:0], r[0]...); r[1] == nil { // of another rule
			continue
		}
		var ok bool
		var primary key
		copy(primary[:], r[0])
		if state, ok = decode(state[:0], &primary, r[1]); !ok || len(state) == 0 {
			continue
		}
		named, ours := keyOfName(op, r[0], strings.TrimPrefix(string(r[2]), prefix))
		if !ours {
			continue
		}
		found(named, state, now)
	}
	return next, nil
}

// settled returns an instant of the server's clock. It first waits, for writersFor at most, until the transactions
// have ended that may have decided before it.
func (s *Store) settled(ctx context.Context, c *pgconn.PgConn) (at window.Instant, err error) {
	var left []string
	for began := time.Now(); ; {
		rows, err := read(ctx, c, s.sql.writers)
		if err != nil {
			return 0, err
		}
		writers := strings.Fields(string(rows[0][1]))
		if at == 0 {
			at, left = window.Instant(int64(binary.BigEndian.Uint64(rows[0][0]))+epoch), writers
		}
		left = slices.DeleteFunc(left, func(w string) bool { return !slices.Contains(writers, w) })
		if len(left) == 0 || time.Since(began) >= writersFor {
			return at, nil
		}
		select {
		case <-time.After(writersEvery):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// keyOfName returns the key in op's space whose row has the given primary key and this
// readable form, or nil if that does not tell. ours is false if the row is certainly of another
// space of the same name.
func keyOfName(op *store.Op, primary []byte, text string) (k []byte, ours bool) {
	is := func(k []byte) bool {
		of := keyOf(&store.Op{Space: op.Space, Key: k})
		return string(of[:]) == string(primary)
	}
	if raw := []byte(text); is(raw) { // of a limiter, or empty
		return raw, true
	}
	// A comma can be part of a value: each costs up to twice as many digests.
	const mostCommas = 6
	pieces, tries := strings.Split(text, ","), 1
	if len(pieces)-1 <= mostCommas {
		tries = 1 << (len(pieces) - 1)
	}
	for inValues := range tries { // bit i is for the comma after piece i
		k = k[:0]
		begin := 0
		for i := range pieces {
			if i+1 < len(pieces) && inValues>>i&1 != 0 {
				continue
			}
			part := strings.Join(pieces[begin:i+1], ",")
			k = append(binary.AppendUvarint(k, uint64(len(part))), part...)
			begin = i + 1
		}
		if is(k) {
			return k, true
		}
	}
	return nil, len(pieces)-1 > mostCommas || strings.HasSuffix(text, cutMark)
}
