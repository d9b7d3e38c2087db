package respapi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
)

// checkEvery is how often a connection checks whether its token is still in force, and which
// namespace it has.
const checkEvery = time.Second

// admit finds the caller and the namespace, and returns an error if the caller lacks the
// scopes in need.
func (c *conn) admit(need access.Scope) error {
	if c.checked.IsZero() {
		caller, err := c.server.c.Auth.Authenticate(c.credentials, access.None)
		if err != nil {
			return err
		}
		ns, err := c.server.c.Namespaces.Choose(c.server.c.Auth, caller, c.user)
		if err != nil {
			return err
		}
		if ns != c.namespace {
			c.throttles = c.server.throttlesOf(ns)
		}
		c.caller, c.namespace, c.checked, c.known = caller, ns, time.Now(), true
		c.large.Caller, c.works.Caller = caller, caller
	}
	return c.caller.May(need)
}

// auth answers AUTH [user] token. The user names a namespace; default means that of the token.
func (c *conn) auth(args []string) error {
	user := ""
	switch {
	case len(args) > 2:
		return errors.New("syntax error: want AUTH [user] token")
	case len(args) == 2 && args[0] != "default":
		user = args[0]
	}
	if err := c.identify(user, args[len(args)-1]); err != nil {
		return err
	}
	c.out.simple("OK")
	return nil
}

// identify sets the caller's identity, and returns an error if the token is not in force.
func (c *conn) identify(user, token string) error {
	c.forget()
	if err := errors.Join(checkName("the user", user), checkName("the token", token)); err != nil {
		return err
	}
	c.user, c.credentials.Token, c.credentials.Shown = strings.Clone(user), strings.Clone(token), true // not the text of a batch
	if err := c.admit(access.None); err != nil {
		c.forget()
		return err
	}
	c.beginWork()
	return nil
}

// checkName returns an error if a text is longer than what a connection keeps.
func checkName(what, text string) error {
	if len(text) > sizes.Text {
		return fmt.Errorf("%s has %d bytes, more than %d", what, len(text), sizes.Text)
	}
	return nil
}

// hello answers HELLO [2|3 [AUTH user token] [SETNAME name]].
func (c *conn) hello(args []string) error {
	three, name := c.out.three, c.name
	if len(args) > 0 {
		switch args[0] {
		case "2":
			three = false
		case "3":
			three = true
		default:
			c.out.fail("NOPROTO unsupported protocol version: want 2 or 3")
			return nil
		}
		args = args[1:]
	}
	for len(args) > 0 {
		switch option := strings.ToUpper(args[0]); {
		case option == "AUTH" && len(args) >= 3:
			user := args[1]
			if user == "default" {
				user = ""
			}
			if err := c.identify(user, args[2]); err != nil {
				return err
			}
			args = args[3:]
		case option == "SETNAME" && len(args) >= 2:
			name, args = args[1], args[2:]
		default:
			return fmt.Errorf("syntax error in HELLO: %.32q: want AUTH user token, or SETNAME name", args[0])
		}
	}
	if err := c.admit(access.None); err != nil {
		return err
	}
	if err := checkName("the name", name); err != nil {
		return err
	}
	c.out.three, c.name = three, strings.Clone(name)
	version := int64(2)
	if three {
		version = 3
	}
	c.out.fields(7)
	c.out.bulk("server").bulk("weir")
	c.out.bulk("version").bulk(c.server.c.Version)
	c.out.bulk("proto").integer(version)
	c.out.bulk("id").integer(c.id)
	c.out.bulk("mode").bulk("standalone")
	c.out.bulk("role").bulk("master")
	c.out.bulk("modules").array(0)
	return nil
}

// client answers the forms of CLIENT that clients send when they connect.
func (c *conn) client(args []string) error {
	switch strings.ToUpper(args[0]) {
	case "SETNAME":
		if len(args) != 2 {
			return errors.New("wrong number of arguments for 'client|setname' command")
		}
		if err := checkName("the name", args[1]); err != nil {
			return err
		}
		c.name = strings.Clone(args[1])
		c.out.simple("OK")
	case "GETNAME":
		if c.name == "" {
			c.out.null()
		} else {
			c.out.bulk(c.name)
		}
	case "ID":
		c.out.integer(c.id)
	case "SETINFO", "NO-EVICT", "NO-TOUCH", "TRACKING":
		// Tracking tells clients when keys that they have read change. Clients of weir cache
		// nothing, so there is nothing to track.
		c.out.simple("OK")
	default:
		return fmt.Errorf("unknown subcommand '%.32s': weir has CLIENT SETNAME, GETNAME, ID, SETINFO, NO-EVICT, NO-TOUCH and TRACKING", args[0])
	}
	return nil
}
