package pgstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Finding is the result of one check of the server; see [Store.Diagnose].
type Finding = remote.Finding

// Diagnose checks whether the server fits the store. It counts nothing and writes nothing.
func (s *Store) Diagnose(ctx context.Context) ([]Finding, error) {
	f, err := ask(remote.WithTimeout(ctx, stuckAfter), s, s.examine)
	if err != nil {
		return nil, err
	}
	findings := f.check()
	for i := range findings {
		findings[i].Node = s.server.Addr
	}
	return findings, nil
}

// facts are what a server has answered, and what the store wants of it.
type facts struct {
	said map[string]string

	durability  string
	connections int
	prefix      string
	bare        bool // a proxy has refused the settings of sessions
	unprepared  bool // a proxy changes servers between transactions

	timeout   time.Duration
	roundTrip time.Duration // median
	ahead     time.Duration // the server's clock, ahead of this machine's
}

// examineSQL asks for facts by name. A fact that the user may not see is NULL.
const examineSQL = `
	SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'server_version_num', 'fsync', 'full_page_writes',
		'synchronous_commit', 'synchronous_standby_names', 'autovacuum', 'max_connections', 'transaction_read_only', 'idle_in_transaction_session_timeout')
	UNION ALL SELECT 'recovery', pg_is_in_recovery()::text
	UNION ALL SELECT 'user', current_user::text
	UNION ALL SELECT 'clients', count(*)::text FROM pg_stat_activity WHERE datid IS NOT NULL
	UNION ALL SELECT 'standbys', count(*)::text FROM pg_stat_replication
	UNION ALL SELECT 'persistence', relpersistence::text FROM pg_class WHERE oid = to_regclass('COUNTERS')
	UNION ALL SELECT 'live', n_live_tup::text FROM pg_stat_all_tables WHERE relid = to_regclass('COUNTERS')
	UNION ALL SELECT 'dead', n_dead_tup::text FROM pg_stat_all_tables WHERE relid = to_regclass('COUNTERS')
	UNION ALL SELECT 'size', pg_total_relation_size(to_regclass('COUNTERS'))::text
	UNION ALL SELECT 'oldest', (SELECT max(extract(epoch FROM now() - xact_start))::int8::text FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid())
	UNION ALL SELECT 'missing', string_agg(p || ' on ' || t, ', ') FROM unnest(ARRAY['COUNTERS', 'META', 'JOURNAL', 'REGISTER']) t,
		unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p
		WHERE NOT (t = 'META' AND p = 'DELETE') AND NOT (t = 'JOURNAL' AND p = 'UPDATE') AND NOT has_table_privilege(t, p)`

// examine asks the server.
func (s *Store) examine(ctx context.Context, c *pgconn.PgConn) (*facts, error) {
	f := &facts{
		said: map[string]string{}, durability: s.config.durability, connections: s.config.connections, prefix: s.config.prefix,
		bare: s.bare.Load(), unprepared: s.unprepared.Load(), timeout: s.config.Timeout,
	}
	rows, err := read(ctx, c, s.sql.examine)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		f.said[string(r[0])] = string(r[1])
	}
	var trips [5]time.Duration
	for i := range trips {
		began := time.Now()
		rows, err := read(ctx, c, `SELECT timestamptz_send(clock_timestamp())`)
		if err != nil {
			return nil, err
		}
		trips[i] = time.Since(began)
		server := window.Instant(int64(binary.BigEndian.Uint64(rows[0][0])) + epoch)
		f.ahead = server.Time().Sub(began.Add(trips[i] / 2))
	}
	slices.Sort(trips[:])
	f.roundTrip = trips[len(trips)/2]
	return f, nil
}

// number returns a fact that is a number, and 0 for one that is not known.
func (f *facts) number(name string) int64 {
	n, _ := strconv.ParseInt(f.said[name], 10, 64)
	return n
}

// check judges the facts: one finding for each check.
func (f *facts) check() (all []Finding) {
	ok := func(check, seen string, means ...string) {
		all = append(all, Finding{Check: check, Level: remote.LevelOK, Seen: seen, Means: strings.Join(means, "")})
	}
	warn := func(check, seen, means, fix string) {
		all = append(all, Finding{Check: check, Level: remote.LevelWarn, Seen: seen, Means: means, Fix: fix})
	}
	said := f.said
	table := f.prefix + "_counters"

	if version := "PostgreSQL " + said["server_version"]; f.number("server_version_num") < 140000 {
		warn("version", version, "it finds expired rows only by reading the whole table, every second", "PostgreSQL 14 or newer")
	} else {
		ok("version", version)
	}

	switch {
	case said["recovery"] == "true":
		warn("role", "a standby", "it accepts no writes: calls meet outages", "the primary's address, or several hosts and target_session_attrs=read-write in the URL")
	case said["transaction_read_only"] == "on":
		warn("role", "default_transaction_read_only is on", "weir's transactions say READ WRITE; other programs' do not", "")
	default:
		ok("role", "a primary")
	}

	if missing := said["missing"]; missing != "" {
		all = append(all, Finding{Check: "rights", Level: remote.LevelRefuse, Seen: said["user"] + " lacks " + missing, Means: "nothing is counted",
			Fix: grant(f.prefix, said["user"])})
	} else {
		ok("rights", "reads and writes the tables "+f.prefix+"_*")
	}

	logged := said["persistence"] != "u"
	switch {
	case logged == (f.durability == durabilityUnlogged):
		to := map[bool]string{true: "UNLOGGED", false: "LOGGED"}[logged]
		warn("durability", fmt.Sprintf("durability=%s, and the table was made otherwise", f.durability), "the table decides what a crash loses",
			fmt.Sprintf("ALTER TABLE %s SET %s, which writes the table anew while nothing is counted", table, to))
	case said["fsync"] == "off" || said["full_page_writes"] == "off":
		warn("durability", fmt.Sprintf("fsync %s, full_page_writes %s", said["fsync"], said["full_page_writes"]),
			"a crash of the machine can destroy the whole database", "both on")
	case f.durability == durabilitySync && (said["synchronous_commit"] == "off"):
		warn("durability", "durability=sync, and synchronous_commit is off", "a crash loses decisions that were answered", "ALTER SYSTEM SET synchronous_commit = on, or for this user")
	case f.durability == durabilitySync:
		ok("durability", "sync, with synchronous_commit "+said["synchronous_commit"])
	case f.durability == durabilityUnlogged:
		ok("durability", "unlogged", "a crash loses all counters")
	default:
		ok("durability", "async", "a crash loses the decisions of less than a second")
	}

	standbys := f.number("standbys")
	switch {
	case standbys > 0 && !logged:
		warn("standbys", fmt.Sprintf("%d, and the table is unlogged", standbys), "after a failover all limits start from nothing", "another durability, if that matters")
	case standbys > 0 && (f.durability != durabilitySync || said["synchronous_standby_names"] == ""):
		ok("standbys", fmt.Sprintf("%d, asynchronous", standbys), "a failover loses the counts that had not reached the standby")
	default:
		ok("standbys", fmt.Sprint(standbys))
	}

	switch {
	case !f.bare && said["idle_in_transaction_session_timeout"] == "0":
		warn("proxy", "idle_in_transaction_session_timeout is 0 although weir sets it", "an instance that hangs holds its locks, and the others meet outages",
			"pgbouncer: an ignore_startup_parameters without the settings of weir, which it then sets in each transaction")
	case f.unprepared:
		warn("proxy", "it changes servers between transactions, without prepared statements", "each statement is parsed and planned anew", "pgbouncer 1.21 or newer with max_prepared_statements")
	default:
		ok("proxy", "none, or one that keeps prepared statements")
	}

	clients, most := f.number("clients"), f.number("max_connections")
	if seen := fmt.Sprintf("%d of max_connections %d", clients, most); most-clients < int64(2*f.connections) {
		warn("connections", seen, fmt.Sprintf("an instance of weir keeps %d; more than the limit are refused", f.connections), "a higher max_connections, connections=2 in the URL, or a pool")
	} else {
		ok("connections", seen)
	}

	trip := fmt.Sprintf("%v, with a time-out of %v", f.roundTrip.Round(time.Microsecond), f.timeout)
	if 4*f.roundTrip > f.timeout { // a transaction has two, and some three
		warn("round-trip", trip, "a call takes two or three round trips, so that slow ones are outages", fmt.Sprintf("--store-timeout %v, or a server nearby", (8*f.roundTrip).Round(time.Millisecond)))
	} else {
		ok("round-trip", trip)
	}

	if apart := fmt.Sprintf("%v apart", f.ahead.Abs().Round(time.Microsecond)); f.ahead.Abs() > time.Second {
		warn("clock", apart, "windows follow the server's clock, logs and memory in an outage this machine's", "run an NTP client on both")
	} else {
		ok("clock", apart)
	}

	live, dead := f.number("live"), f.number("dead")
	rows := fmt.Sprintf("%d rows and %d dead ones in %d KB", live, dead, f.number("size")>>10)
	switch {
	case said["autovacuum"] == "off":
		warn("vacuum", rows+", autovacuum is off", "the table grows with every call", "ALTER SYSTEM SET autovacuum = on")
	case dead > 100_000 && dead > 2*live:
		warn("vacuum", rows+", the oldest transaction has begun "+cmp.Or(said["oldest"], "?")+" s ago", "the table grows, and calls get slower",
			"end long transactions and unused replication slots, which keep dead rows; then VACUUM "+table)
	default:
		ok("vacuum", rows)
	}
	return all
}
