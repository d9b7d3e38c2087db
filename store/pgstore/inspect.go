package pgstore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// errNoKey is the error of an inspection of a key that is not there.
var errNoKey = errors.New("weir: no such key")

// Inspect returns a page of text about the rows of a key, for people. key is the name of a row,
// such as posts:ann, or the 32 hexadecimal digits of its key, which the database finds at once in a
// large table. A row has the words of a state and not the limit that they belong to, so the page does not say what
// each word means; words that can be instants are shown as such.
func (s *Store) Inspect(ctx context.Context, key string) (string, error) {
	digest, err := hex.DecodeString(key)
	if err != nil || len(digest) != 16 {
		digest = nil
	}
	rows, err := ask(remote.WithTimeout(ctx, stuckAfter), s, func(ctx context.Context, c *pgconn.PgConn) ([][][]byte, error) {
		return read(ctx, c, s.sql.inspect, []byte(key), digest)
	})
	switch {
	case err != nil:
		return "", err
	case len(rows) == 0:
		return "", fmt.Errorf("%q: %w", key, errNoKey)
	}
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		describe(&b, r)
	}
	return b.String(), nil
}

// describe writes the page of a row, as the statement inspect returns it.
func describe(b *strings.Builder, row [][]byte) {
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(row[i])) }
	now, expires := window.Instant(number(4)+epoch), number(3)
	ago := func(at window.Instant) string {
		text := at.Time().Format("2006-01-02 15:04:05.000000Z")
		if at > now {
			return fmt.Sprintf("%s, in %v", text, at.Sub(now))
		}
		return fmt.Sprintf("%s, %v ago", text, now.Sub(at))
	}
	fmt.Fprintf(b, "key      %s\nname     %s\n", row[0], asText(string(row[1])))
	switch {
	case expires == math.MinInt64:
		b.WriteString("expires  now: it is empty\n")
	case expires > 1<<53: // the limit keeps it
		b.WriteString("expires  never\n")
	default:
		fmt.Fprintf(b, "expires  %s\n", ago(window.Instant(expires)))
	}
	fmt.Fprintf(b, "now      %s\n", strings.TrimSuffix(ago(now), ", 0s ago"))
	var k key
	_, _ = hex.Decode(k[:], row[0]) // which the statement has encoded
	state, ok := decode(nil, &k, row[2])
	if !ok {
		fmt.Fprintf(b, "state    %d bytes, which are no counter that this version of weir knows\n", len(row[2]))
		return
	}
	fmt.Fprintf(b, "state    %d bytes, %d words\n", len(row[2]), len(state))
	const most = 20
	if len(state) > most {
		fmt.Fprintf(b, "  … %d words before\n", len(state)-most)
		state = state[len(state)-most:]
	}
	for _, w := range state {
		const year = 365 * 24 * 3600 * 1e6
		if at := window.Instant(w); w < 1<<53 && at > now-10*year && at < now+10*year {
			fmt.Fprintf(b, "  %s\n", ago(at))
		} else {
			fmt.Fprintf(b, "  %d\n", w)
		}
	}
}
