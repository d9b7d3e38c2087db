package pgstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// version is the version of the tables. A store of another version does not use them.
const version = "1"

var errVersion = errors.New("the tables are of another version of weir")

// statement is an SQL statement that is prepared under its name, which has a digest of the text: a proxy may give the
// connection to another store, whose statements can be others.
type statement struct{ name, text string }

// statements are what a lane runs.
type statements struct {
	begin, settings, commit, rollback, lock, make, read, write statement

	// Others are rare, and not prepared.
	create, tables, meta, size, sweep, sweepAged, makeSecret, replaceSecret, addLog, trimLog, readLog, keep, trimKept, kept, inspect, writers, keys, examine string
}

// all returns the statements that lanes prepare.
func (s *statements) all() []statement {
	return []statement{s.begin, s.settings, s.commit, s.rollback, s.lock, s.make, s.read, s.write}
}

// statementsFor returns the statements with names of tables that begin with prefix. Transactions
// have the settings that a session would have, where a proxy refuses them.
func statementsFor(prefix string, settings map[string]string) statements {
	named := strings.NewReplacer("COUNTERS", prefix+"_counters", "META", prefix+"_meta", "JOURNAL", prefix+"_log", "REGISTER", prefix+"_kept")
	text := func(name, text string) statement {
		text = named.Replace(text)
		sum := sha256.Sum256([]byte(text))
		return statement{fmt.Sprintf("%s_%s_%x", prefix, name, sum[:4]), text}
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		set = append(set, fmt.Sprintf("set_config('%s', '%s', true)", name, settings[name]))
	}
	return statements{
		begin:    text("begin", `BEGIN ISOLATION LEVEL READ COMMITTED`),
		settings: text("settings", `SELECT `+strings.Join(set, ", ")),
		commit:   text("commit", `COMMIT`),
		rollback: text("rollback", `ROLLBACK`),

		// Locks the rows of keys that exist, in their order, and reads them, each with the server's
		// time after it was locked, in microseconds since 2000.
		lock: text("lock", `SELECT key, state, timestamptz_send(clock_timestamp()) FROM
			(SELECT key, state FROM COUNTERS WHERE key = ANY ($1::bytea[]) ORDER BY key FOR NO KEY UPDATE) locked`),
		// Reads rows and the server's time.
		read: text("read", `SELECT key, state, NULL::bytea FROM COUNTERS WHERE key = ANY ($1::bytea[])
			UNION ALL SELECT NULL, NULL, timestamptz_send(clock_timestamp())`),

		// Locks the rows of keys, in their order, and makes those that are missing. The
		// condition is never true: it leaves a row as it is, locked. Names come as bytes, because
		// a name that the database's encoding cannot express would fail all calls of the transaction.
		make: text("make", `INSERT INTO COUNTERS (key, state, expires, name)
			SELECT k, '', 0, CASE getdatabaseencoding() WHEN 'UTF8' THEN convert_from(n, 'UTF8') ELSE encode(n, 'escape') END
			FROM unnest($1::bytea[], $2::bytea[]) u(k, n)
			ON CONFLICT (key) DO UPDATE SET expires = COUNTERS.expires WHERE false`),

		// Writes rows that the transaction has locked, so they exist.
		write: text("write", `UPDATE COUNTERS SET state = u.state, expires = u.expires
			FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) u(key, state, expires) WHERE COUNTERS.key = u.key`),

		create: named.Replace(`
			SET LOCAL synchronous_commit = on;
			SELECT pg_advisory_xact_lock(hashtext('COUNTERS'), 1);
			CREATE TABLE IF NOT EXISTS META (name text PRIMARY KEY, value bytea NOT NULL);
			CREATE %s TABLE IF NOT EXISTS COUNTERS (
				key     bytea  PRIMARY KEY,
				state   bytea  NOT NULL,
				expires bigint NOT NULL,
				name    text   NOT NULL
			) WITH (
				fillfactor = 60,
				autovacuum_vacuum_scale_factor = 0.02,
				autovacuum_vacuum_insert_scale_factor = 0.1,
				autovacuum_analyze_scale_factor = 0.1,
				autovacuum_vacuum_cost_delay = 0
			);
			ALTER TABLE COUNTERS ALTER COLUMN state SET STORAGE EXTERNAL, ALTER COLUMN name SET STORAGE PLAIN;
			CREATE TABLE IF NOT EXISTS JOURNAL (
				name   text   NOT NULL,
				at     bigint NOT NULL,
				digest bytea  NOT NULL,
				entry  bytea  NOT NULL,
				PRIMARY KEY (name, at, digest)
			);
			CREATE TABLE IF NOT EXISTS REGISTER (
				name    text   NOT NULL,
				field   bytea  NOT NULL,
				value   bytea  NOT NULL,
				version bigint NOT NULL,
				PRIMARY KEY (name, field)
			);
			CREATE INDEX IF NOT EXISTS REGISTER_changed ON REGISTER (name, version);
			CREATE INDEX IF NOT EXISTS REGISTER_removed ON REGISTER (name, version) WHERE value = '' AND field <> '';
			COMMENT ON TABLE COUNTERS IS 'counters of weir: key is a digest, name is for people, expires is in microseconds since 1970';
			INSERT INTO META (name, value) VALUES ('version', '%s'), ('members', '%s') ON CONFLICT DO NOTHING`),
		// Returns a row if there are tables, with the names of those with row-level security for the user.
		tables: named.Replace(`SELECT array_to_string(ARRAY(SELECT t FROM unnest(ARRAY['COUNTERS', 'META', 'JOURNAL', 'REGISTER']) t
			WHERE row_security_active(to_regclass(t))), ', ') WHERE to_regclass('META') IS NOT NULL`),
		meta: named.Replace(`SELECT value FROM META WHERE name = $1`),

		// A crash must not lose the secret, whatever the durability of counters is.
		makeSecret: named.Replace(`INSERT INTO META (name, value)
			SELECT 'secret', $1::bytea FROM set_config('synchronous_commit', 'on', true) ON CONFLICT DO NOTHING`),
		replaceSecret: named.Replace(`UPDATE META SET value = $2 FROM set_config('synchronous_commit', 'on', true)
			WHERE name = 'secret' AND value = $1 RETURNING name`),

		// A log loses what is older than the first limit, and all but the newest of the second. An entry of an instance
		// whose clock is ahead gets the time of the server, so that it does not stay for longer. So it can have another
		// time when a call is repeated.
		addLog: named.Replace(`WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 now)
			INSERT INTO JOURNAL (name, at, digest, entry)
			SELECT $1, least(u.at, now), u.digest, u.entry FROM clock, unnest($2::int8[], $3::bytea[], $4::bytea[]) u(at, digest, entry)
			WHERE u.at <= now OR u.digest NOT IN (SELECT digest FROM JOURNAL
				WHERE name = $1 AND at > (SELECT now FROM clock) - 60000000)
			ON CONFLICT DO NOTHING`),
		trimLog: named.Replace(`DELETE FROM JOURNAL WHERE name = $1 AND at < greatest(
			(extract(epoch FROM clock_timestamp()) * 1000000)::int8 - $2::int8,
			(SELECT at FROM JOURNAL WHERE name = $1 ORDER BY at DESC OFFSET $3::int8 LIMIT 1))`),
		readLog: named.Replace(`SELECT entry FROM (SELECT at, digest, entry FROM JOURNAL WHERE name = $1
			ORDER BY at DESC, digest DESC LIMIT $2::int8 OFFSET $3::int8) newest ORDER BY at, digest`),

		// Of the rows of a register, the one with an empty field has the version of the whole, and as its
		// value the version up to which removals are forgotten. A row without a value is of a field that was
		// removed. A change is made only if the register still has the version $2, and moves it on to the
		// server's time, so that versions never return.
		keep: named.Replace(`WITH head AS (
				INSERT INTO REGISTER (name, field, value, version)
				SELECT $1, '', int8send(now), now + cardinality($3::bytea[])
				FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 now, set_config('synchronous_commit', 'on', true)) clock
				WHERE $2::int8 = 0 OR EXISTS (SELECT FROM REGISTER WHERE name = $1 AND field = '')
				ON CONFLICT (name, field) DO UPDATE
				SET version = greatest(REGISTER.version, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) + cardinality($3::bytea[])
				WHERE REGISTER.version = $2::int8
				RETURNING version),
			changed AS (
				INSERT INTO REGISTER (name, field, value, version)
				SELECT $1, field, value, head.version - cardinality($3::bytea[]) + place
				FROM head, unnest($3::bytea[], $4::bytea[]) WITH ORDINALITY u(field, value, place)
				ON CONFLICT (name, field) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version)
			SELECT int8send(version) FROM head`),
		trimKept: named.Replace(`WITH old AS (
				SELECT version FROM REGISTER WHERE name = $1 AND value = '' AND field <> '' ORDER BY version DESC OFFSET 1000 LIMIT 1),
			head AS (UPDATE REGISTER SET value = greatest(REGISTER.value, int8send(old.version)) FROM old WHERE name = $1 AND field = '')
			DELETE FROM REGISTER USING old WHERE name = $1 AND value = '' AND field <> '' AND REGISTER.version <= old.version`),
		kept: named.Replace(`WITH head AS (
				SELECT version, $2::int8 > version OR int8send($3::int8) < value again FROM REGISTER WHERE name = $1 AND field = '')
			SELECT * FROM (SELECT ''::bytea field, CASE WHEN again THEN 'again' ELSE '' END::bytea, int8send(version) version FROM head
			UNION ALL (SELECT field, r.value, int8send(r.version) FROM head, REGISTER r
			WHERE name = $1 AND field <> '' AND r.version > CASE WHEN again THEN 0 ELSE $2::int8 END
			ORDER BY r.version LIMIT $4::int8)) rows ORDER BY field <> '', version`),

		// Finds rows by the name or by the digits of the key.
		inspect: named.Replace(`SELECT encode(key, 'hex')::text, name, state, expires, timestamptz_send(clock_timestamp())
			FROM COUNTERS WHERE name = $1 OR key = $2::bytea ORDER BY key LIMIT 10`),

		// Returns the time, and then the transactions that may write to the table.
		writers: named.Replace(`SELECT timestamptz_send(statement_timestamp()), array_to_string(ARRAY(
			SELECT DISTINCT virtualtransaction FROM pg_locks WHERE relation = 'COUNTERS'::regclass AND granted AND mode IN ('RowShareLock', 'RowExclusiveLock')
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), ' ')`),

		// Looks at some rows in the order of their keys, and returns what those have whose
		// name begins with a prefix, and the time. Names are as make gets them.
		keys: named.Replace(`SELECT key, CASE WHEN starts_with(name, $2) THEN state END,
			CASE WHEN starts_with(name, $2) THEN CASE getdatabaseencoding() WHEN 'UTF8' THEN convert_to(name, 'UTF8') ELSE decode(name, 'escape') END END
			FROM COUNTERS WHERE key > $1::bytea ORDER BY key LIMIT $3::int8`),

		examine: named.Replace(examineSQL),

		size: named.Replace(`SELECT (pg_relation_size('COUNTERS') / current_setting('block_size')::int8)::text`),

		// Deletes expired rows in a range of blocks, unless another store does so. It waits for no lock.
		sweep: named.Replace(`DELETE FROM COUNTERS WHERE ctid = ANY (ARRAY (
			SELECT ctid FROM COUNTERS
			WHERE (SELECT pg_try_advisory_xact_lock(hashtext('COUNTERS'), 2)) AND ctid >= $1::text::tid AND ctid < $2::text::tid AND expires <= (extract(epoch FROM now()) * 1000000)::int8 - $3::text::int8
			FOR UPDATE SKIP LOCKED))`),

		// Deletes some denials that are older than a day, and the registers of events that wait for a webhook
		// if those did not change for an hour longer. The names of logs are read from the index, one row each.
		sweepAged: named.Replace(`WITH RECURSIVE names AS (
				(SELECT name FROM JOURNAL ORDER BY name LIMIT 1)
				UNION ALL SELECT (SELECT name FROM JOURNAL WHERE name > names.name ORDER BY name LIMIT 1) FROM names WHERE name IS NOT NULL),
			heads AS (SELECT name FROM REGISTER WHERE starts_with(name, 'events/') AND field = ''
				AND version < (extract(epoch FROM now() - interval '25 hours') * 1000000)::int8 FOR UPDATE SKIP LOCKED),
			outboxes AS (DELETE FROM REGISTER USING heads WHERE REGISTER.name = heads.name)
			DELETE FROM JOURNAL WHERE ctid = ANY (ARRAY (
				SELECT log.ctid FROM names, LATERAL (SELECT ctid FROM JOURNAL WHERE name = names.name
					AND at < (extract(epoch FROM now() - interval '24 hours') * 1000000)::int8
					ORDER BY at LIMIT $1::text::int8 FOR UPDATE SKIP LOCKED) log
				WHERE starts_with(names.name, 'denials') LIMIT $1::text::int8))`),
	}
}

// rightsError is the error of a user who lacks a right.
type rightsError struct {
	said  *pgconn.PgError
	grant string
}

func (e *rightsError) Error() string { return e.said.Error() }

func (e *rightsError) Unwrap() error { return e.said }

// Grant returns what gives the user the right; weir doctor looks for this method.
func (e *rightsError) Grant() string { return e.grant }

// lacks returns err, as a rightsError if a right is missing, which grant gives.
func lacks(err error, grant string) error {
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "42501" {
		return &rightsError{said, grant}
	}
	return err
}

// grant returns the statement that gives a user the rights on the tables.
func grant(prefix, user string) string {
	return fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s_counters, %[1]s_meta, %[1]s_log, %[1]s_kept TO %[2]s", prefix, user)
}

// tables reports whether there are tables. It returns an error if row-level security may hide rows of them: a session
// with row_security off learns that from each statement, but a proxy may refuse settings.
func (s *Store) tables(ctx context.Context, c *pgconn.PgConn) (exist bool, err error) {
	rows, err := read(ctx, c, s.sql.tables)
	if err != nil || len(rows) == 0 || len(rows[0][0]) == 0 {
		return len(rows) > 0, err
	}
	names, user := string(rows[0][0]), s.config.conn.User
	said := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42501", Message: "row-level security hides rows of " + names + " from " + user}
	const off = " DISABLE ROW LEVEL SECURITY"
	return true, &rightsError{said, "ALTER TABLE " + strings.ReplaceAll(names, ", ", off+"; ALTER TABLE ") + off}
}

// prepare makes the tables if there are none, and learns what the store needs of them. Stores
// that start at the same time make them once.
func (s *Store) prepare(ctx context.Context, c *pgconn.PgConn) (err error) {
	dropped := s.dropped.Load() // until the tables are there, so that other lanes wait for them
	if s.members.Load() != nil && !dropped {
		return nil
	}
	exist, err := s.tables(ctx, c)
	if err != nil {
		return err
	}
	var got []byte
	if exist && !dropped {
		if got, err = s.meta(ctx, c, "version"); err != nil {
			return lacks(err, grant(s.config.prefix, s.config.conn.User))
		}
	}
	if got == nil { // there are no tables, or they were emptied
		if err := s.makeTables(ctx, c); err != nil {
			return err
		}
		if got, err = s.meta(ctx, c, "version"); err != nil {
			return lacks(err, grant(s.config.prefix, s.config.conn.User))
		}
	}
	if string(got) != version {
		return fmt.Errorf("%w: they have version %q, and this one needs %q", errVersion, got, version)
	}
	members, err := s.meta(ctx, c, "members")
	if err == nil {
		s.members.Store(&members)
		if dropped { // otherwise it may be the note of another lane
			s.dropped.Store(false)
		}
	}
	return err
}

// makeTables makes the tables, and the rows of the first one, that are not there.
func (s *Store) makeTables(ctx context.Context, c *pgconn.PgConn) error {
	unlogged := ""
	if s.config.durability == durabilityUnlogged {
		unlogged = "UNLOGGED"
	}
	// The statements of one Exec are one transaction.
	if err := c.Exec(ctx, fmt.Sprintf(s.sql.create, unlogged, version, rand.Text())).Close(); err != nil {
		return fmt.Errorf("make the tables: %w", lacks(err, fmt.Sprintf("CREATE SCHEMA %[1]s AUTHORIZATION %[1]s; or start weir once as a user who may make the tables, and: %[2]s", s.config.conn.User, grant(s.config.prefix, s.config.conn.User))))
	}
	return nil
}

// meta returns a value that is stored for all stores with the prefix.
func (s *Store) meta(ctx context.Context, c *pgconn.PgConn, name string) ([]byte, error) {
	r := c.ExecParams(ctx, s.sql.meta, [][]byte{[]byte(name)}, nil, nil, []int16{1}).Read()
	switch {
	case r.Err != nil:
		return nil, r.Err
	case len(r.Rows) == 0:
		return nil, nil
	}
	return r.Rows[0][0], nil
}
