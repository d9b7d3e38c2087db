package pgstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// upsert is what programs without a limiter do: it counts in a fixed window, up to a bound.
const upsert = `INSERT INTO bounded AS b (key, n, ends) VALUES ($1, 1, now() + interval '1 minute')
	ON CONFLICT (key) DO UPDATE SET
		n = CASE WHEN b.ends <= now() THEN 1 ELSE b.n + 1 END,
		ends = CASE WHEN b.ends <= now() THEN now() + interval '1 minute' ELSE b.ends END
	WHERE b.n < 1000000 OR b.ends <= now()`

// floor is the least that a program does that locks a row, decides in Go and writes it back, in two
// round trips.
var floor = [...]string{
	`BEGIN`,
	`SELECT n, ends, clock_timestamp() FROM bounded WHERE key = $1 FOR NO KEY UPDATE`,
	`UPDATE bounded SET n = n + 1 WHERE key = $1`,
	`COMMIT`,
}

// BenchmarkTake compares a take with a bounded upsert, both by the same number of callers over
// the same keys. WEIR_PG_DURABILITY names the durability of both.
func BenchmarkTake(b *testing.B) {
	durability := os.Getenv("WEIR_PG_DURABILITY")
	if durability == "" {
		durability = "async"
	}
	n := pgtest.Server(b, "-c", "max_connections=200", "-c", "shared_buffers=256MB")
	kind := ""
	if durability == "unlogged" {
		kind = "UNLOGGED"
	}
	n.Must("CREATE " + kind + " TABLE bounded (key text PRIMARY KEY, n bigint NOT NULL, ends timestamptz NOT NULL) WITH (fillfactor = 60)")
	limit := window.MustCompile(window.Limit{Quota: 1_000_000, Window: window.Fixed(time.Minute)})
	// dial makes a connection with prepared statements.
	dial := func(b *testing.B, statements ...string) *pgconn.PgConn {
		config, err := pgconn.ParseConfig(n.URL())
		if err != nil {
			b.Fatal(err)
		}
		if durability != "sync" {
			config.RuntimeParams["synchronous_commit"] = "off"
		}
		conn, err := pgconn.ConnectConfig(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close(context.Background()) })
		for i, text := range statements {
			if _, err := conn.Prepare(b.Context(), fmt.Sprint("s", i), text, nil); err != nil {
				b.Fatal(err)
			}
		}
		return conn
	}
	for _, c := range []struct{ callers, keys int }{{1, 10_000}, {64, 10_000}, {64, 1}} {
		b.Run(fmt.Sprintf("callers=%d/keys=%d/upsert", c.callers, c.keys), func(b *testing.B) {
			each(b, c.callers, c.keys, func() func(key string) error {
				conn := dial(b, upsert)
				return func(key string) error {
					_, err := conn.ExecPrepared(b.Context(), "s0", [][]byte{[]byte(key)}, nil, nil).Close()
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("callers=%d/keys=%d/floor", c.callers, c.keys), func(b *testing.B) {
			each(b, c.callers, c.keys, func() func(key string) error {
				conn := dial(b, floor[:]...)
				return func(key string) error {
					for i := 0; i < len(floor); i += 2 {
						var batch pgconn.Batch
						for n := i; n < i+2; n++ {
							var values [][]byte
							if n == 1 || n == 2 {
								values = [][]byte{[]byte(key)}
							}
							batch.ExecPrepared(fmt.Sprint("s", n), values, nil, nil)
						}
						if err := conn.ExecBatch(b.Context(), &batch).Close(); err != nil {
							return err
						}
					}
					return nil
				}
			})
		})
		b.Run(fmt.Sprintf("callers=%d/keys=%d/weir", c.callers, c.keys), func(b *testing.B) {
			s, err := pgstore.Open(b.Context(), n.URL("timeout=10s", "durability="+durability, fmt.Sprint("prefix=b", opened.Add(1)), os.Getenv("WEIR_PG_OPTIONS")))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			space := store.NewSpace("", "posts", "posts", 0)
			began := transactions(b, n)
			defer func() { b.ReportMetric(float64(b.N)/(transactions(b, n)-began), "calls/transaction") }()
			each(b, c.callers, c.keys, func() func(key string) error {
				return func(key string) error {
					return store.Do(b.Context(), s, store.Take, []store.Op{{Space: space, Limit: limit, Key: []byte(key), N: 1}})
				}
			})
		})
	}
	if got := n.Must("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"); got != "0" {
		b.Errorf("got %s deadlocks, want none", got)
	}
}

// each runs b.N calls by so many callers, over so many keys.
func each(b *testing.B, callers, keys int, caller func() func(key string) error) {
	calls := make([]func(string) error, callers)
	for i := range calls {
		calls[i] = caller()
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for i, call := range calls {
		all.Go(func() {
			var seed [32]byte
			binary.LittleEndian.PutUint64(seed[:], uint64(i))
			r := rand.New(rand.NewChaCha8(seed))
			for left.Add(-1) >= 0 {
				if err := call(fmt.Sprint("user", r.IntN(keys))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// transactions returns how many transactions a server has committed.
func transactions(b *testing.B, n *pgtest.Node) (sum float64) {
	text := n.Must("SELECT pg_stat_force_next_flush(); SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")
	if _, err := fmt.Sscan(text, &sum); err != nil {
		b.Fatal(err)
	}
	return sum
}
