package respapi

import (
	"strconv"
	"strings"
)

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
