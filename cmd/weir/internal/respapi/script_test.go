package respapi_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/datatest"
)

// TestScripts runs testdata/*.txt:
//
//	rules [tokens]   starts a service with the rules; tokens: with two tokens
//	client           opens another connection, and closes the one before
//	send             sends commands, one a line, each after the reply to the one before
//	type             sends commands as people type them
//	pipeline         sends commands, one a line, all at once
//	wait DURATION    lets time pass
//
// Receipts are random: the script has RECEIPT for the last one.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/script/*.txt", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			var l *pipes
			var c *client
			receipts := regexp.MustCompile(`"[A-Za-z0-9_-]{38,64}"`)
			receipt := ""
			datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
				var text strings.Builder
				note := func(reply string) {
					if r := receipts.FindString(reply); r != "" {
						receipt = strings.Trim(r, `"`)
						reply = strings.ReplaceAll(reply, receipt, "RECEIPT")
					}
					text.WriteString(reply + "\n")
				}
				switch d.Cmd {
				case "rules":
					tokens := d.HasArg("tokens")
					s := newServer(t, d.Input, func(to *respapi.Config) {
						if tokens {
							to.Auth = auth(t)
						}
					})
					l = newPipes()
					serve(t, s, l)
					c = newClient(t, l.dial())
				case "client":
					c.Close()
					c = newClient(t, l.dial())
				case "wait":
					time.Sleep(d.Duration(t))
				case "send":
					for line := range strings.Lines(d.Input) {
						note(c.do(words(strings.ReplaceAll(line, "RECEIPT", receipt))...))
					}
				case "type":
					for line := range strings.Lines(d.Input) {
						note(c.send(strings.TrimSuffix(line, "\n")+"\r\n", 1)[0])
					}
				case "pipeline":
					all, n := "", 0
					for line := range strings.Lines(d.Input) {
						all += command(words(line)...)
						n++
					}
					for _, r := range c.send(all, n) {
						note(r)
					}
				default:
					d.Fatalf(t, "unknown command %s", d.Cmd)
				}
				return text.String()
			})
			c.Close()
		})
	})
}

// words splits a line. ” is an empty word.
func words(line string) []string {
	list := strings.Fields(line)
	for i := range list {
		if list[i] == "''" {
			list[i] = ""
		}
	}
	return list
}

// auth returns an authenticator with the token all, which has all scopes, and the token some, which
// may only decide.
func auth(t *testing.T) *access.Authenticator {
	t.Helper()
	keys := scripttest.Keys(t, "", access.Own{Name: "ops", Token: "all", Scopes: access.All}, access.Own{Name: "shop", Token: "some", Scopes: access.Decide})
	return &access.Authenticator{Keys: keys, Reach: access.ReachNamed}
}
