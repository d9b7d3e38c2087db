package main

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
	"github.com/weirhq/weir/internal/pgtest"
)

// overPostgres measures limiters that count in a PostgreSQL server on this machine.
func overPostgres(s settings) *table {
	server := pgtest.Server(host{settings: s}, "-c", "max_connections=300", "-c", "shared_buffers=256MB", "-c", "fsync=on")
	keys, hot := measure.NewKeys(10_000), measure.NewKeys(1)
	config := plenty
	config.Postgres = server.URL()
	g := s.measure("postgres", s.few(), s.kept(peer.Postgres(), config, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
		load := func(keys measure.Keys, callers int) measure.Load {
			measure.Callers(l.Allow, keys, callers, 2*s.slice)
			return measure.Callers(l.Allow, keys, callers, 6*s.slice)
		}
		one, many, crowd := load(keys, 1), load(keys, 64), load(hot, 64)
		return measure.Numbers{1e9 / one.PerSecond, many.PerSecond, many.P99, crowd.PerSecond, crowd.P99, min(one.Admitted, many.Admitted, crowd.Admitted)}
	}))
	t := g.table(s, []column{
		{"1 caller", "one", timing, at(0)}, {"× upsert", "one ratio", ratio, by(0)},
		{"64 callers", "64", number, at(1)}, {"× upsert", "ratio", ratio, by(1)}, {"p99", "", timing, at(2)},
		{"64 callers, one key", "hot", number, at(3)}, {"× upsert", "hot ratio", ratio, by(3)}, {"p99", "", timing, at(4)}, {"admitted", "", share, at(5)},
	})
	t.notes = append(t.notes,
		fmt.Sprintf("Deadlocks of the server in all turns: %s.", server.Must("SELECT sum(deadlocks) FROM pg_stat_database")),
		fmt.Sprintf("PostgreSQL %s, with its defaults but for shared_buffers = 256MB.", server.Must("SHOW server_version")))
	return t
}

// host has a server of package pgtest run until the end of a section, as it runs until the end of a test. Of the methods of
// testing.TB it has those that the package uses; an error ends the section.
type host struct {
	testing.TB
	settings
}

func (h host) Helper()                           {}
func (h host) Cleanup(f func())                  { h.later(f) }
func (h host) Fatal(args ...any)                 { measure.Check(fmt.Errorf("%s", fmt.Sprint(args...))) }
func (h host) Fatalf(format string, args ...any) { measure.Check(fmt.Errorf(format, args...)) }
func (h host) Skip(args ...any)                  { h.Fatal(args...) }
