package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/window"
)

// logSize is the maximum number of entries of a log.
const logSize = 10_000

// Log adds entries, at most a few hundred, to a log that is stored with the counters for all
// stores on the prefix. It returns the newest n of the log, the oldest one first. A log has the
// newest 10,000 entries that are not older than age. at has the instant of each entry. An entry that
// is in the log already is not added again, so that a call that failed can be repeated.
func (s *Store) Log(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, n int) ([]string, error) {
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
		rows, err := read(ctx, c, s.sql.readLog, []byte(name), int8Of(int64(n)))
		for _, row := range rows {
			newest = append(newest, string(row[0]))
		}
		return newest, err
	})
}

// int8Of returns a parameter of the type int8.
func int8Of(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
