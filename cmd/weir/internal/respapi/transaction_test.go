package respapi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
