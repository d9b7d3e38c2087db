package respapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// spec describes one command, as COMMAND reports it.
type spec struct {
	name string

	// arity is the number of arguments with the name; -n means at least n.
	arity int

	// needsAuth reports whether the caller must be authenticated, and need has the scopes that it
	// needs.
	needsAuth bool
	need      access.Scope

	flags string
	key   int // position of the key, for clients of clusters; 0: none
}

// The commands, by their position in specs.
const (
	cmdTake = iota
	cmdCheck
	cmdRecord
	cmdRefund
	cmdSettle
	cmdCancel
	cmdRenew
	cmdUsage
	cmdThrottle // the first command that states its limit
	cmdGCRA
	cmdIncrex // the last one
	cmdPing
	cmdEcho // the last command that a transaction can have
	cmdHello
	cmdAuth
	cmdSelect
	cmdCommand
	cmdInfo
	cmdClient
	cmdConfig
	cmdReset
	cmdQuit
	cmdMulti
	cmdExec
	cmdDiscard
	cmdWatch
)

var specs = [...]spec{
	cmdTake:     {"WEIR.TAKE", -3, true, access.Decide, "write fast", 0},
	cmdCheck:    {"WEIR.CHECK", -3, true, access.Decide, "readonly fast", 0},
	cmdRecord:   {"WEIR.RECORD", -3, true, access.Record, "write fast", 0},
	cmdRefund:   {"WEIR.REFUND", -3, true, access.Record, "write fast", 0},
	cmdSettle:   {"WEIR.SETTLE", -4, true, access.Decide, "write fast", 0},
	cmdCancel:   {"WEIR.CANCEL", -4, true, access.Decide, "write fast", 0},
	cmdRenew:    {"WEIR.RENEW", -4, true, access.Decide, "write fast", 0},
	cmdUsage:    {"WEIR.USAGE", -2, true, access.Read, "readonly fast", 0},
	cmdThrottle: {"CL.THROTTLE", -5, true, access.Decide, "write fast", 1},
	cmdGCRA:     {"GCRA", -5, true, access.Decide, "write fast", 1},
	cmdIncrex:   {"INCREX", -2, true, access.Decide, "write fast", 1},
	cmdPing:     {"PING", -1, true, access.None, "fast", 0},
	cmdEcho:     {"ECHO", 2, true, access.None, "fast", 0},
	cmdHello:    {"HELLO", -1, false, access.None, "noscript loading stale fast no_auth", 0},
	cmdAuth:     {"AUTH", -2, false, access.None, "noscript loading stale fast no_auth", 0},
	cmdSelect:   {"SELECT", 2, true, access.None, "loading stale fast", 0},
	cmdCommand:  {"COMMAND", -1, true, access.None, "loading stale", 0},
	cmdInfo:     {"INFO", -1, true, access.None, "loading stale", 0},
	cmdClient:   {"CLIENT", -2, true, access.None, "noscript loading stale", 0},
	cmdConfig:   {"CONFIG", -2, true, access.None, "admin loading stale", 0},
	cmdReset:    {"RESET", 1, false, access.None, "noscript loading stale fast no_auth", 0},
	cmdQuit:     {"QUIT", -1, false, access.None, "noscript loading stale fast no_auth", 0},
	cmdMulti:    {"MULTI", 1, true, access.None, "noscript loading stale fast", 0},
	cmdExec:     {"EXEC", 1, true, access.None, "noscript loading stale", 0},
	cmdDiscard:  {"DISCARD", 1, false, access.None, "noscript loading stale fast no_auth", 0},
	cmdWatch:    {"WATCH", -2, true, access.None, "noscript loading stale fast", 0},
}

// positions maps names in upper case to positions in specs.
var positions = func() map[string]int {
	m := make(map[string]int, len(specs))
	for i := range specs {
		m[specs[i].name] = i
	}
	return m
}()

// statesLimit reports whether a command states its limit.
func statesLimit(command int) bool { return command >= cmdThrottle && command <= cmdIncrex }

// position returns the position of the command called name, in any case.
func position(name string) (int, bool) {
	i, ok := positions[strings.ToUpper(name)]
	return i, ok
}

// command runs one command, or adds it to the batch or to the transaction.
func (c *conn) command(args []string) {
	i, ok := position(args[0])
	if !ok {
		c.settle()
		c.transaction.refuse()
		c.out.fail(fmt.Sprintf("ERR unknown command '%.16s': weir has WEIR.TAKE, CHECK, RECORD, REFUND, SETTLE, CANCEL, RENEW, USAGE, CL.THROTTLE, GCRA and INCREX", args[0]))
		return
	}
	c.server.commands[i].calls.Add(1)
	if err := c.run(i, args); err != nil {
		c.fail(i, err)
		if i == cmdExec {
			c.endTransaction()
		} else {
			c.transaction.refuse()
		}
	}
}

// refuse answers a command that is too large, of which args are the first arguments.
func (c *conn) refuse(args []string) {
	c.settle()
	c.transaction.refuse()
	if len(args) > 0 {
		if i, ok := position(args[0]); ok {
			c.server.commands[i].calls.Add(1)
			c.server.commands[i].failed.Add(1)
		}
	}
	c.out.fail("ERR the command is too large: want arguments of at most 16384 bytes, and 262144 in all")
}

// run runs the command numbered i, whose name is args[0].
func (c *conn) run(i int, args []string) error {
	s := &specs[i]
	if s.arity > 0 && len(args) != s.arity || len(args) < -s.arity {
		return fmt.Errorf("wrong number of arguments for '%s' command", strings.ToLower(s.name))
	}
	if s.needsAuth {
		if err := c.admit(s.need); err != nil {
			return err
		}
	}
	args = args[1:]
	switch {
	case c.transaction.open && i != cmdExec && i != cmdDiscard && i != cmdReset && i != cmdQuit:
		return c.enqueue(i, args)
	case i < cmdUsage:
		return c.add(i, args)
	case statesLimit(i):
		return c.throttle(i, args)
	}
	c.settle() // replies come in order
	return c.now(i, args)
}

// now runs a command that is not part of a batch.
func (c *conn) now(i int, args []string) error {
	switch i {
	case cmdUsage:
		return c.usage(args)
	case cmdPing:
		switch {
		case len(args) > 1:
			return errors.New("wrong number of arguments for 'ping' command")
		case len(args) == 1:
			c.out.bulk(args[0])
		default:
			c.out.simple("PONG")
		}
	case cmdEcho:
		c.out.bulk(args[0])
	case cmdHello:
		return c.hello(args)
	case cmdAuth:
		return c.auth(args)
	case cmdSelect:
		if args[0] != "0" {
			return errors.New("DB index is out of range: weir has database 0 only; namespaces are chosen by AUTH")
		}
		c.out.simple("OK")
	case cmdCommand:
		c.describe(args)
	case cmdInfo:
		c.info()
	case cmdClient:
		return c.client(args)
	case cmdConfig:
		if !strings.EqualFold(args[0], "GET") {
			return errors.New("weir is configured by flags: see weir serve --help")
		}
		c.out.fields(0)
	case cmdMulti:
		c.multi()
	case cmdExec:
		return c.exec()
	case cmdDiscard:
		return c.discard()
	case cmdWatch:
		return errors.New("WATCH is not supported: each command of weir decides and counts in one step, so that there is nothing to watch")
	case cmdReset:
		c.endTransaction()
		c.forget()
		c.out.three, c.name = false, ""
		c.out.simple("RESET")
	case cmdQuit:
		c.out.simple("OK")
		c.ended = true
	}
	return nil
}

// fail replies with an error to a command, after the replies to the commands before it.
func (c *conn) fail(i int, err error) {
	c.settle()
	c.failed(i, err)
}

// failed replies with an error.
func (c *conn) failed(i int, err error) {
	c.server.commands[i].failed.Add(1)
	c.out.fail(errorText(err))
}

// errorText returns an error in the form of Redis: the kind in capitals, and the text.
func errorText(err error) string {
	var no *access.Refusal
	var busy *access.Overload
	switch {
	case errors.As(err, &no):
		switch no.Reason {
		case access.Missing:
			return "NOAUTH Authentication required: send AUTH and a token"
		case access.Unknown, access.Slowed:
			return "WRONGPASS " + no.Detail
		}
		return "NOPERM " + no.Detail
	case errors.As(err, &busy):
		return "BUSY " + busy.Detail
	}
	if p := answer.ProblemOf(err); p.Status != http.StatusInternalServerError {
		return "ERR " + p.Error()
	}
	return "ERR " + strings.TrimPrefix(err.Error(), "weir: ")
}

// forget drops the caller's identity, except its certificate and its address.
func (c *conn) forget() {
	c.credentials.Token, c.credentials.Shown, c.user = "", false, ""
	c.checked, c.known = time.Time{}, false
}

// describe answers COMMAND [COUNT | DOCS … | INFO name …].
func (c *conn) describe(args []string) {
	what := ""
	if len(args) > 0 {
		what = strings.ToUpper(args[0])
	}
	switch what {
	case "COUNT":
		c.out.integer(int64(len(specs)))
	case "DOCS":
		c.out.fields(0)
	case "INFO":
		c.out.array(len(args) - 1)
		for _, name := range args[1:] {
			if i, ok := position(name); ok {
				c.describeOne(&specs[i])
			} else {
				c.out.null()
			}
		}
	default:
		c.out.array(len(specs))
		for i := range specs {
			c.describeOne(&specs[i])
		}
	}
}

// describeOne appends the description of one command.
func (c *conn) describeOne(s *spec) {
	c.out.array(10)
	c.out.bulk(strings.ToLower(s.name))
	c.out.integer(int64(s.arity))
	flags := strings.Fields(s.flags)
	c.out.array(len(flags))
	for _, f := range flags {
		c.out.simple(f)
	}
	for range 3 { // the first key, the last one, and the step
		c.out.integer(int64(s.key))
	}
	for range 4 { // categories, tips, key specifications, subcommands
		c.out.array(0)
	}
}

// info answers INFO [section …], with the fields that clients read.
func (c *conn) info() {
	st := c.server.Stats()
	calls := int64(0)
	for _, n := range st.Calls {
		calls += n
	}
	c.out.bulk("# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\nweir_version:" + c.server.c.Version +
		"\r\n\r\n# Clients\r\nconnected_clients:" + strconv.Itoa(st.Connections) +
		"\r\n\r\n# Stats\r\ntotal_commands_processed:" + strconv.FormatInt(calls, 10) +
		"\r\n\r\n# Replication\r\nrole:master\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n")
}
