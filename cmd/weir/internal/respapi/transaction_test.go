package respapi_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// A transaction is bounded in commands, in bytes and in time. Nothing of one that is not
// complete is counted.
func TestTransactionBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		serve(t, newServer(t, postsRule, nil), l)
		take := command("WEIR.TAKE", "user", "42")
		for name, tc := range map[string]struct {
			text string
			n    int
			want string // of the last reply
		}{
			"many commands":       {strings.Repeat(take, 1001) + command("EXEC"), 1002, "-EXECABORT Transaction discarded because of previous errors."},
			"much text":           {strings.Repeat(command("ECHO", strings.Repeat("x", 16000)), 70) + command("EXEC"), 71, "-EXECABORT Transaction discarded because of previous errors."},
			"many arguments":      {strings.Repeat(command(append([]string{"WEIR.TAKE"}, make([]string, 255)...)...), 300) + command("EXEC"), 301, "-EXECABORT Transaction discarded because of previous errors."},
			"and the next is new": {strings.Repeat("x\r\n", 3) + command("DISCARD") + command("MULTI") + command("EXEC"), 6, "*[]"},
		} {
			c := newClient(t, l.dial())
			got := c.send(command("MULTI")+tc.text, tc.n+1)
			if last := got[tc.n]; last != tc.want {
				t.Errorf("%s: got %.100s, want %s", name, last, tc.want)
			}
			c.Close()
		}
		slow, gone := newClient(t, l.dial()), newClient(t, l.dial())
		for _, c := range []*client{slow, gone} {
			if got := c.send(command("MULTI")+take, 2); got[1] != "+QUEUED" {
				t.Fatalf("got %q", got)
			}
		}
		gone.Close()
		begun := time.Now()
		if got, _ := slow.reply(); got != "-ERR Protocol error: timeout while waiting for EXEC or DISCARD" || time.Since(begun) > 15*time.Second {
			t.Errorf("got %s after %v", got, time.Since(begun))
		}
		slow.Close()
		c := newClient(t, l.dial())
		defer c.Close()
		if got := c.do("WEIR.USAGE", "posts", "user", "42"); !strings.Contains(got, `"used" :0 `) {
			t.Errorf("got %s, want nothing counted", got)
		}
		most := c.send(command("MULTI")+strings.Repeat(take, 1000)+command("EXEC"), 1002)[1001]
		if allowed := strings.Count(most, "*[:1"); allowed != 5 || strings.Count(most, "*[:0") != 995 {
			t.Errorf("got %d allowed, want 5 of 1000", allowed)
		}
	})
}

// The memory for the reply to a transaction is reserved until the client has read the reply.
func TestTransactionReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		resources := &access.ResourceLimits{Memory: 4 << 20}
		serve(t, newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources }), l)
		c := newClient(t, l.dial())
		c.send(command("MULTI")+strings.Repeat(command("ECHO", strings.Repeat("x", 16000)), 60), 61)
		if _, err := io.WriteString(c.Conn, command("EXEC")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, memory := resources.Now(); memory < 800_000 {
			t.Errorf("got %d bytes reserved for a reply that is not read, want most of its 960,000", memory)
		}
		if got, err := c.reply(); err != nil || strings.Count(got, " ") != 59 {
			t.Errorf("got %.100s %v, want 60 texts", got, err)
		}
		synctest.Wait()
		if _, memory := resources.Now(); memory != 0 {
			t.Errorf("got %d bytes reserved, want none", memory)
		}
		c.Close()
	})
}

// A transaction with many arguments has memory reserved for the attributes that EXEC makes of them.
func TestTransactionOfAttributes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		resources := &access.ResourceLimits{Memory: 4 << 20}
		serve(t, newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources }), l)
		c := newClient(t, l.dial())
		args := []string{"WEIR.TAKE"}
		for i := range 64 {
			args = append(args, fmt.Sprint(i), "v")
		}
		c.send(command("MULTI")+strings.Repeat(command(args...), 100), 101)
		if _, memory := resources.Now(); memory < 350_000 {
			t.Errorf("got %d bytes reserved, want those of 12,800 texts, which are 6,400 attributes", memory)
		}
		c.Close()
	})
}

// Commands without a rule, such as CL.THROTTLE, reserve memory, too.
func TestTransactionOfThrottles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		serve(t, newServer(t, postsRule, func(c *respapi.Config) {
			c.Shared, c.Resources = true, &access.ResourceLimits{Memory: 200_000}
		}), l)
		c := newClient(t, l.dial())
		got := c.send(command("MULTI")+strings.Repeat(command("CL.THROTTLE", "a", "1", "2", "3"), 1000)+command("EXEC"), 1002)[1001]
		if !strings.HasPrefix(got, "-EXECABORT Transaction discarded: BUSY ") {
			t.Errorf("got %.100s", got)
		}
		if got := c.do("CL.THROTTLE", "a", "1", "2", "3"); got != "*[:0 :2 :1 :-1 :2]" {
			t.Errorf("got %s, want nothing counted before", got)
		}
		c.Close()
	})
}

// EXEC ends the transaction even if it is refused.
func TestRefusedExecEndsTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens")
		write := func(token string) {
			text := fmt.Sprintf("shop sha256:%x scopes=decide\n", sha256.Sum256([]byte(token)))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("first")
		keys := scripttest.Keys(t, file)
		l := newPipes()
		serve(t, newServer(t, postsRule, func(c *respapi.Config) {
			c.Auth = &access.Authenticator{Keys: keys, Reach: access.ReachNamed}
		}), l)
		c := newClient(t, l.dial())
		defer c.Close()
		do := func(want string, words ...string) {
			t.Helper()
			if got := c.do(words...); !strings.HasPrefix(got, want) {
				t.Errorf("%v: got %s, want %s", words, got, want)
			}
		}
		do("+OK", "AUTH", "first")
		do("+OK", "MULTI")
		do("-ERR wrong number", "EXEC", "x")
		do("-ERR EXEC without MULTI", "EXEC")
		for _, end := range []string{"EXEC", "DISCARD"} {
			write("first")
			_, err1 := keys.Reload()
			do("+OK", "AUTH", "first")
			do("+OK", "MULTI")
			do("+QUEUED", "WEIR.TAKE", "user", "42")
			write("second")
			_, err2 := keys.Reload()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			do(map[string]string{"EXEC": "-WRONGPASS", "DISCARD": "+OK"}[end], end)
			do("+OK", "AUTH", "second")
			do("*[:1", "WEIR.CHECK", "HITS", "5", "user", "42")
		}
	})
}
