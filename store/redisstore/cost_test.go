package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/redisstore/redistest"
	"github.com/weirhq/weir/window"
)

// BenchmarkServer measures what a call costs the server: the CPU of its
// process, and the time inside the commands alone. A busy machine makes the
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
	second := time.Second
	for _, quota := range []int64{10, 1000, 100_000} {
		for _, l := range []struct {
			name string
			window.Limit
		}{
			{"sliding", window.Limit{Quota: quota, Window: window.Sliding(second)}},
			{"cells", window.Limit{Quota: quota, Window: window.Cells(second, 60)}},
			{"fixed", window.Limit{Quota: quota, Window: window.Fixed(second)}},
			{"calendar", window.Limit{Quota: quota, Window: window.Calendar(window.Minute, nil)}},
			{"bucket", window.Limit{Quota: quota, Window: window.Bucket(second, 0)}},
		} {
			b.Run(fmt.Sprint(l.name, "/quota=", quota), func(b *testing.B) {
				m.hammer(b, c, &l.Limit)
			})
		}
	}
}

// meter reads a server's counters.
type meter struct{ client rueidis.Client }

// hammer takes on one hot key, admitted as fast as the quota has it: with a
// quota of q in a second it denies what is above q a second.
func (m meter) hammer(b *testing.B, c rueidis.Client, l *window.Limit) {
	s := redisstore.New(c, redisstore.WithPrefix("b"))
	space := &store.Space{ID: b.Name(), Name: "rule"}
	ops := store.Op{Space: space, Limit: l, Key: []byte("user-42"), N: 1}
	m.measure(b, "evalsha", func() error {
		mine := [1]store.Op{ops}
		return s.Do(b.Context(), store.Take, mine[:])
	})
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

// read is a command's calls, µs in them, and the process's CPU seconds.
func (m meter) read(b *testing.B, command string) (calls, usec, cpu float64) {
	b.Helper()
	info, err := m.client.Do(b.Context(), m.client.B().Info().Section("everything").Build()).ToString()
	if err != nil {
		b.Fatal(err)
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
