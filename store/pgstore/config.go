package pgstore

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/fault"
)

// Config states which database a store uses, and how. [Parse] makes one from a URL, which states what the
// fields do not have. Fields may be changed before [Config.Open].
type Config struct {
	// Timeout is the longest time that a decision waits for answers. Default 100 ms. See
	// [remote.WithTimeout].
	Timeout time.Duration

	// Changed, when not nil, is called when the server becomes unavailable, and when it
	// answers again. It may be called before Open returns. It must not block, or use the store.
	Changed func(Change)

	conn        *pgconn.Config
	prefix      string
	durability  string
	connections int
	inFlight    int
}

// The values of the option durability.
const (
	durabilityAsync    = "async"
	durabilitySync     = "sync"
	durabilityUnlogged = "unlogged"
)

// The resource limits of the options.
const (
	maxConnections = 64
	maxInFlight    = 1 << 16
)

// prefixForm is the form of a prefix: that of a name that PostgreSQL needs no quotes for, of
// which the names of tables begin.
var prefixForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// Parse reads a configuration from a URL:
//
//	postgres://user:password@host:5432/database?sslmode=verify-full&timeout=50ms
//	postgres://user@host1,host2/database
//
// These options are the store's own:
//
//	prefix         of the names of tables; default weir
//	timeout        of a decision; default 100ms
//	durability     async, sync or unlogged; see the package
//	connections    that the store keeps, from 1; default 4
//	in_flight      the most calls that wait at the same time; default 1024
//	password_file  the name of a file with the password
//
// All others are those of PostgreSQL's own library, or settings of the session, as pgx reads
// them. Of several hosts the store uses one that accepts writes, unless target_session_attrs says
// otherwise. The error names every fault and repeats no password.
func Parse(rawURL string) (Config, error) {
	c := Config{Timeout: 100 * time.Millisecond, prefix: "weir", durability: durabilityAsync, connections: 4, inFlight: 1024}
	var faults fault.List
	scheme, rest, _ := strings.Cut(rawURL, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		faults.Addf("store.scheme", "want postgres://host/database")
		return c, faults.Err()
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(query, "@") {
		// The password may have a ?, and everything is out of place.
		faults.Addf("store", "@ after the hosts: in a user or password write / as %%2F, ? as %%3F, @ as %%40")
		return c, faults.Err()
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		faults.Addf("store", "options: a %% that no two hex digits follow, or a semicolon")
		return c, faults.Err()
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if len(options[name]) > 1 {
			faults.Addf("store."+name, "given twice")
		}
	}
	number := func(name string, to *int, most int) {
		if text := take(options, name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > most {
				faults.Addf("store."+name, "%q: want a number from 1 to %d", text, most)
			}
			*to = n
		}
	}
	number("connections", &c.connections, maxConnections)
	number("in_flight", &c.inFlight, maxInFlight)
	if text := take(options, "prefix"); text != "" {
		if c.prefix = text; !prefixForm.MatchString(text) {
			faults.Addf("store.prefix", "%q: want lower-case letters, digits and _, at most 40", text)
		}
	}
	if text := take(options, "timeout"); text != "" {
		if c.Timeout, err = time.ParseDuration(text); err != nil || c.Timeout < time.Millisecond {
			faults.Addf("store.timeout", "%q: want a time such as 50ms, at least 1ms", text)
		}
	}
	if text := take(options, "durability"); text != "" {
		all := []string{durabilityAsync, durabilitySync, durabilityUnlogged}
		if c.durability = text; !slices.Contains(all, text) {
			faults.Addf("store.durability", "%q: want one of %s%s", text, strings.Join(all, ", "), fault.DidYouMean(text, all))
		}
	}
	password := ""
	if name := take(options, "password_file"); name != "" {
		b, err := os.ReadFile(name)
		if err != nil {
			faults.Addf("store.password_file", "%v", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	}
	if c.conn, err = pgconn.ParseConfig(scheme + "://" + rest + "?" + options.Encode()); err != nil {
		faults.Addf("store", "%s", parseFault(err))
		return c, faults.Err()
	}
	for _, name := range slices.Sorted(maps.Keys(c.conn.RuntimeParams)) {
		if hint := fault.DidYouMean(name, ownOptions); hint != "" && options.Has(name) { // the server would refuse it, too, but later
			faults.Addf("store."+name, "unknown option%s", hint)
		}
	}
	if strings.Contains(c.Servers(), ",") && c.conn.ValidateConnect == nil {
		// The one that accepts writes, whichever it is now.
		c.conn.ValidateConnect = acceptsWrites
	}
	if c.conn.ConnectTimeout == 0 {
		c.conn.ConnectTimeout = hostFor // of several hosts the others get their turn
	}
	if password != "" {
		c.conn.Password = password
	}
	return c, faults.Err()
}

// ownOptions are options whose misspelled names are told from settings of the session.
var ownOptions = []string{"prefix", "timeout", "durability", "connections", "in_flight", "password_file", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"}

// acceptsWrites returns an error if a new connection's server does not.
func acceptsWrites(ctx context.Context, c *pgconn.PgConn) error {
	r := c.ExecParams(ctx, "SELECT 1 WHERE current_setting('transaction_read_only')::bool", nil, nil, nil, nil).Read()
	if r.Err == nil && len(r.Rows) > 0 {
		return errReadOnly
	}
	return r.Err
}

// take removes an option and returns its value.
func take(options url.Values, name string) string {
	text := options.Get(name)
	options.Del(name)
	return text
}

// parseFault returns why pgx cannot read a URL, without the URL, which may have a password out
// of place.
func parseFault(err error) string {
	if cause := err.Error(); strings.Contains(cause, "`: ") {
		_, cause, _ = strings.Cut(cause, "`: ")
		if !strings.Contains(cause, "://") {
			return cause
		}
	}
	return "not a URL of PostgreSQL: want postgres://user@host:5432/database"
}

// Servers returns the addresses of the servers, separated by commas.
func (c Config) Servers() string {
	if c.conn == nil {
		return ""
	}
	var all []string
	add := func(host string, port uint16) {
		addr := host
		if !strings.HasPrefix(host, "/") { // a directory of sockets
			addr = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	add(c.conn.Host, c.conn.Port)
	for _, f := range c.conn.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(all, ",")
}

// String returns the location of the database as a URL without secrets, for logs.
func (c Config) String() string {
	if c.conn == nil {
		return "postgres://"
	}
	return fmt.Sprintf("postgres://%s@%s/%s", url.PathEscape(c.conn.User), c.Servers(), url.PathEscape(c.conn.Database))
}

// session returns the configuration of a connection. Without settings it asks the server
// for none of its own: a proxy may refuse them.
func (c *Config) session(settings bool) *pgconn.Config {
	own := c.conn.Copy()
	set := map[string]string{"application_name": "weir"}
	if settings {
		maps.Copy(set, c.settings())
	}
	for name, value := range set {
		if _, given := own.RuntimeParams[name]; !given {
			own.RuntimeParams[name] = value
		}
	}
	return own
}

// settings returns those of a session.
func (c *Config) settings() map[string]string {
	set := map[string]string{
		// A plan is kept, because the server would make one for the arrays of each call, which takes
		// longer than to run it; and the table may have been empty when it was made.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off",
		// A statement by itself has the isolation that transactions of weir state.
		"default_transaction_isolation": "read committed",
		// A process that hangs in a transaction ends its connection, and the locks.
		"idle_in_transaction_session_timeout": "2000", "lock_timeout": "2000",
		// A policy that would hide rows is an error: hidden rows look like ones that are not there.
		"row_security": "off",
	}
	if c.durability != durabilitySync {
		set["synchronous_commit"] = "off"
	}
	return set
}
