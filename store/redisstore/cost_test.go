package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

const year = 365 * 24 * time.Hour // nothing leaves such a window meanwhile

// BenchmarkServer measures what a call costs the server: the CPU of its
// process, and the time inside the commands. A busy machine makes the
// caller slow, not these numbers.
func BenchmarkServer(b *testing.B) {
	n := redistest.Server(b)
	c := connect(b, n.Addr())
	m := meter{c}
	b.Run("incr", func(b *testing.B) {
		m.measure(b, "incr", func() error { return c.Do(b.Context(), c.B().Incr().Key("n").Build()).Error() })
	})
	b.Run("evalsha of incr", func(b *testing.B) {
		s := rueidis.NewLuaScript("return redis.call('INCR',KEYS[1])")
		m.measure(b, "evalsha", func() error { return s.Exec(b.Context(), c, []string{"n"}, nil).Error() })
	})
	for _, quota := range []int64{10, 1000, 100_000} {
		admitting := time.Duration(quota) * time.Microsecond // faster than anybody asks
		for name, length := range map[string]time.Duration{"admitted": admitting, "denied": year} {
			for _, w := range []window.Window{
				window.Sliding(length), window.Cells(length, 10), window.Fixed(length), window.Bucket(length, 0),
			} {
				b.Run(fmt.Sprintf("%s/quota=%d/%s", w.Kind, quota, name), func(b *testing.B) {
					m.hammer(b, c, window.MustCompile(window.Limit{Quota: quota, Window: w}))
				})
			}
		}
	}
}

// meter reads a server's counters.
type meter struct{ client rueidis.Client }

// hammer takes on one hot key.
func (m meter) hammer(b *testing.B, c rueidis.Client, l *window.Compiled) {
	s := redisstore.New(c, "")
	op := store.Op{Space: store.NewSpace("", b.Name(), "rule", 0), Limit: l, Key: []byte("user-42"), N: 1}
	if l.Window.Length == year {
		full := op
		full.N = l.Quota
		if err := store.Do(b.Context(), s, store.Record, []store.Op{full}); err != nil {
			b.Fatal(err)
		}
	}
	var denied atomic.Int64
	m.measure(b, "evalsha", func() error {
		mine := [1]store.Op{op}
		err := store.Do(b.Context(), s, store.Take, mine[:])
		if !mine[0].Result.Allowed {
			denied.Add(1)
		}
		return err
	})
	b.ReportMetric(100*float64(denied.Load())/float64(b.N), "%denied")
}

func (m meter) measure(b *testing.B, command string, call func() error) {
	b.SetParallelism(32)
	calls, usec, cpu := m.read(b, command)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	calls2, usec2, cpu2 := m.read(b, command)
	b.ReportMetric((cpu2-cpu)*1e6/float64(b.N), "cpu-µs/op")
	b.ReportMetric((usec2-usec)/(calls2-calls), "inside-µs/op")
}

// read returns the calls of a command, the µs in them, and the CPU seconds of the
// process.
func (m meter) read(t testing.TB, command string) (calls, usec, cpu float64) {
	t.Helper()
	info, err := m.client.Do(t.Context(), m.client.B().Info().Section("everything").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		number := func(text string) float64 {
			x, _ := strconv.ParseFloat(text, 64)
			return x
		}
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			cpu += number(value)
		case "cmdstat_" + command:
			for field := range strings.SplitSeq(value, ",") {
				key, v, _ := strings.Cut(field, "=")
				switch key {
				case "calls":
					calls = number(v)
				case "usec":
					usec = number(v)
				}
			}
		}
	}
	return calls, usec, cpu
}
