package peer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

const pgxModule = "github.com/jackc/pgx/v5"

// boundedTable is the table of the raw costs.
const boundedTable = `CREATE TABLE IF NOT EXISTS bounded (key text PRIMARY KEY, n bigint NOT NULL, ends timestamptz NOT NULL) WITH (fillfactor = 60)`

// Postgres returns the raw costs of counting in a PostgreSQL server, and weir.
func Postgres() []Peer {
	upsert := func(name, note string, connections int) Peer {
		return onPostgres(name, note, connections, func(c Config) []string {
			return []string{fmt.Sprintf(`INSERT INTO bounded AS b (key, n, ends) VALUES ($1, 1, now() + interval '%d seconds')
				ON CONFLICT (key) DO UPDATE SET
					n = CASE WHEN b.ends <= now() THEN 1 ELSE b.n + 1 END,
					ends = CASE WHEN b.ends <= now() THEN excluded.ends ELSE b.ends END
				WHERE b.n < %d OR b.ends <= now()`, int64(c.Window.Seconds()), c.Quota)}
		}, func(conn *pgconn.PgConn, key string) bool {
			tag, err := conn.ExecPrepared(context.Background(), "s0", [][]byte{[]byte(key)}, nil, nil).Close()
			return err == nil && tag.RowsAffected() == 1
		})
	}
	reference := upsert("raw: bounded upsert, a connection for each caller", "counts in a fixed window in one statement, without the hits left and the wait", 64)
	reference.Reference = true
	locking := onPostgres("raw: lock a row, then write it, a connection for each caller", "the two round trips of a decision outside the server; it never denies", 64, func(Config) []string {
		return []string{
			`BEGIN`, `SELECT n, ends, clock_timestamp() FROM bounded WHERE key = $1 FOR NO KEY UPDATE`,
			`INSERT INTO bounded AS b (key, n, ends) VALUES ($1, 1, now()) ON CONFLICT (key) DO UPDATE SET n = b.n + 1`, `COMMIT`,
		}
	}, func(conn *pgconn.PgConn, key string) bool {
		for _, names := range [][2]string{{"s0", "s1"}, {"s2", "s3"}} {
			var b pgconn.Batch
			for _, name := range names {
				var values [][]byte
				if name == "s1" || name == "s2" {
					values = [][]byte{[]byte(key)}
				}
				b.ExecPrepared(name, values, nil, nil)
			}
			if conn.ExecBatch(context.Background(), &b).Close() != nil {
				return false
			}
		}
		return true
	})
	locking.Kind = Cost
	return slices.Concat([]Peer{reference, upsert("raw: bounded upsert, 4 connections", "", 4), locking}, weirOver(Config.postgres))
}

// onPostgres returns a raw cost: calls on connections that have prepared statements, named s0, s1 and so on. There are as
// many connections as callers, up to most.
func onPostgres(name, note string, most int, statements func(Config) []string, call func(conn *pgconn.PgConn, key string) bool) Peer {
	return Peer{Name: name, Note: note, Keys: true, Module: pgxModule, New: func(c Config) Limiter {
		ctx := context.Background()
		config := measure.Must(pgconn.ParseConfig(c.Postgres))
		config.RuntimeParams["synchronous_commit"] = "off" // as weir has it by default
		open := func() *pgconn.PgConn {
			conn := measure.Must(pgconn.ConnectConfig(ctx, config))
			for i, text := range statements(c) {
				measure.Must(conn.Prepare(ctx, fmt.Sprint("s", i), text, nil))
			}
			return conn
		}
		// The connection that was used last is used first: its process in the server is warm.
		var mu sync.Mutex
		var idle []*pgconn.PgConn
		free := make(chan struct{}, most)
		first := measure.Must(pgconn.ConnectConfig(ctx, config))
		measure.Check(first.Exec(ctx, boundedTable).Close())
		measure.Check(first.Close(ctx))
		for range most {
			idle = append(idle, open())
		}
		return Limiter{Allow: func(key string) bool {
			free <- struct{}{}
			mu.Lock()
			conn := idle[len(idle)-1]
			idle = idle[:len(idle)-1]
			mu.Unlock()
			ok := call(conn, key)
			mu.Lock()
			idle = append(idle, conn)
			mu.Unlock()
			<-free
			return ok
		}, Close: func() {
			for _, conn := range idle {
				_ = conn.Close(ctx) // nothing is lost
			}
		}}
	}}
}
