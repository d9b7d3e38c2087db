package weirslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/weirslog"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

// handler returns a handler without times.
func handler(out *bytes.Buffer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime})
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Two of the five posts are admitted. Of the denials the first is logged, and the two after it would be numbered
// in the next line.
func Example() {
	stable := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "retry_after" {
			return slog.Attr{} // which differ from run to run
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: stable}))
	observer := weirslog.New(log)
	observer.Keys = true
	posts := weir.MustLimiter(weir.Sliding(2, 24*time.Hour), weir.WithName("posts"), weir.WithObserver(observer))
	defer posts.Close()
	for range 5 {
		if _, err := posts.Allow(context.Background(), "ann"); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// level=INFO msg="weir: denied" rule=posts outcome=deny key=ann
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := weirslog.New(slog.New(handler(&out, slog.LevelInfo)))
		o.Keys = true
		s := weirtest.NewStore()
		m, err := weir.NewLimiter(weir.Sliding(1, time.Hour), weir.WithName("posts"), weir.WithObserver(o), weir.WithStore(s), weir.WithOutage(rule.OutageDeny))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		want := func(lines ...string) {
			t.Helper()
			if got := strings.TrimSpace(out.String()); got != strings.Join(lines, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
			}
			out.Reset()
		}
		allow := func(n int) {
			for range n {
				_, _ = m.Allow(t.Context(), "ann")
			}
		}
		_, _ = m.Check(t.Context(), "ann")
		allow(1)
		want("")
		allow(100)
		_, _ = m.Check(t.Context(), "ann")
		want(`level=INFO msg="weir: denied" rule=posts outcome=deny key=ann retry_after=1h0m0s`)
		time.Sleep(10 * time.Second)
		allow(1)
		want(`level=INFO msg="weir: denied" rule=posts outcome=deny key=ann retry_after=59m50s suppressed=99`)

		s.Fail(errors.New("refused"))
		time.Sleep(10 * time.Second)
		allow(3)
		want(`level=WARN msg="weir: store unavailable" verb=take err="store unavailable: refused"`,
			`level=INFO msg="weir: denied" rule=posts outcome=deny key=ann retry_after=1s degraded=test`)
		_, _ = m.AllowN(t.Context(), "ann", -1)
		_, _ = m.AllowN(t.Context(), "ann", -1)
		want(`level=WARN msg="weir: not decided" verb=take err="weir: hits: -1: want at least 1; Check looks without counting"`)
		o.Every = 0
		_, _ = m.AllowN(t.Context(), "ann", -1)
		want(`level=WARN msg="weir: not decided" verb=take err="weir: hits: -1: want at least 1; Check looks without counting" suppressed=1`)
	})
}

// What the logger does not want costs no pace, and keys are left out unless asked for.
func TestQuiet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	denied := &weir.Decision{Rule: "posts", Outcome: rule.Deny, RetryAfter: window.Never, Usages: []weir.Usage{{Rule: "posts", Key: "ann"}}}
	weirslog.New(slog.New(handler(&out, slog.LevelError))).Decided(t.Context(), store.Take, denied, 0)
	weirslog.New(slog.New(handler(&out, slog.LevelError))).Failed(t.Context(), store.Take, errors.New("x"))
	if out.Len() > 0 {
		t.Errorf("got %s", &out)
	}
	o := weirslog.New(slog.New(handler(&out, slog.LevelInfo)))
	for i := range 5000 {
		denied.Rule = fmt.Sprint("rule", i)
		o.Decided(t.Context(), store.Take, denied, 0)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1001 || lines[0] != `level=INFO msg="weir: denied" rule=rule0 outcome=deny` {
		t.Errorf("got %d lines, the first %s, want one of each of 1,000 rules and one of the others", len(lines), lines[0])
	}
}
