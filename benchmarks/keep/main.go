// Program keep measures what it costs to keep counters on a disk: package durable,
// and the same counters in pebble, bbolt and SQLite, which get what the journal of
// memstore says has changed, once in an interval, in one synced batch.
//
//	go run ./keep -do write -engine durable    300,000 updates a second over a million keys
//	go run ./keep -do load -engine durable     ten million keys: write, read into memory
//	go run ./keep -do take -weir bin/weir      POST /v1/take with a directory and without
//
// -engine none counts in memory only: what the others take in addition is what
// keeping costs. -engine floor does so beside a goroutine that writes and syncs as many
// bytes as package durable, and does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

var (
	do      = flag.String("do", "write", "write, load or take")
	engine  = flag.String("engine", "durable", "none, floor, durable, pebble, bbolt or sqlite")
	keys    = flag.Int("keys", 0, "keys; 0: a million to write, ten million to load")
	rate    = flag.Int("rate", 300_000, "updates a second")
	length  = flag.Duration("for", 20*time.Second, "how long to write")
	program = flag.String("weir", "weir", "the program that -do take measures")
	dir     = flag.String("dir", "", "directory for the files; default a temporary one")

	space = store.NewSpace("", "posts", "posts", 0)
	limit = window.MustCompile(window.Limit{Quota: 1 << 40, Window: window.Fixed(24 * time.Hour)})
)

const interval = 200 * time.Millisecond

// sink keeps counters in some engine.
type sink interface {
	put(key uint64, state []uint64)
	commit() error // what was put, synced

	// load calls put for all keys, from two goroutines.
	load(put func(key uint64, state []uint64)) error
	close() error
}

var sinks = map[string]func(dir string) (sink, error){"pebble": openPebble, "bbolt": openBolt, "sqlite": openSQLite}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if *dir == "" {
		made, err := os.MkdirTemp("", "keep")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }()
		*dir = made
	}
	if *do == "load" {
		if *keys == 0 {
			*keys = 10_000_000
		}
		return load()
	}
	if *keys == 0 {
		*keys = 1_000_000
	}
	if *do == "take" {
		return take()
	}
	return write()
}

// kept is a store whose counters are kept somehow.
type kept struct {
	store.Store
	lag   func() time.Duration
	close func() error
	load  time.Duration // that loading took
}

// open opens the engine in dir, and loads what it has.
func open() (*kept, error) {
	begun := time.Now()
	switch *engine {
	case "none":
		m := memstore.New()
		return &kept{m, func() time.Duration { return 0 }, m.Close, 0}, nil
	case "floor":
		f, err := openFloor(*dir)
		if err != nil {
			return nil, err
		}
		m := memstore.New()
		return &kept{m, func() time.Duration { return 0 }, func() error { return errors.Join(f.close(), m.Close()) }, 0}, nil
	case "durable":
		s, err := durable.Open(*dir)
		if err != nil {
			return nil, err
		}
		return &kept{s, func() time.Duration { return s.Stats().Lag }, s.Close, time.Since(begun)}, nil
	}
	make, ok := sinks[*engine]
	if !ok {
		return nil, fmt.Errorf("engine %q: not one of none, floor, durable, pebble, bbolt, sqlite", *engine)
	}
	to, err := make(*dir)
	if err != nil {
		return nil, err
	}
	m := memstore.New(memstore.WithJournal(memstore.Secret{1}))
	r := m.Restore(memstore.Part{Space: space, Limit: limit})
	if err := to.load(r.Put); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	b := behind(m, to)
	return &kept{m, b.lag, b.close, took}, nil
}

// take takes a hit of the key name.
func take(ctx context.Context, s store.Store, name string) (window.Result, error) {
	ops := []store.Op{{Space: space, Limit: limit, Key: []byte(name), N: 1}}
	err := store.Do(ctx, s, store.Take, ops)
	return ops[0].Result, err
}

func write() error {
	k, err := open()
	if err != nil {
		return err
	}
	ctx := context.Background()
	names := make([]string, *keys)
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
		if _, err := take(ctx, k, names[i]); err != nil {
			return err
		}
	}
	for k.lag() > 2*interval {
		time.Sleep(interval)
	}
	time.Sleep(2 * time.Second)
	r := rand.New(rand.NewPCG(1, 2))
	made := peak()
	resetPeak()
	cpu, wrote, begun := processor(), written(), time.Now()
	var worst, longest time.Duration
	var calls []time.Duration
	updates, slow := 0, 0
	for time.Since(begun) < *length {
		due := int(time.Since(begun).Seconds() * float64(*rate))
		for ; updates < due; updates++ {
			name := names[r.IntN(len(names))]
			if updates%64 != 0 {
				_, err = take(ctx, k, name)
			} else {
				at := time.Now()
				_, err = take(ctx, k, name)
				took := time.Since(at)
				if calls, longest = append(calls, took), max(longest, took); took > time.Millisecond {
					slow++
				}
			}
			if err != nil {
				return err
			}
		}
		worst = max(worst, k.lag())
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begun)
	slices.Sort(calls)
	fmt.Printf("%-8s %d updates/s over %d keys: processor %.1f %%, written %.1f MB/s, size %.1f MB, worst lag %v, call p99.9 %v, longest %v, longer than 1 ms %d of %d, peak memory %d MB, before that %d MB\n",
		*engine, int(float64(updates)/took.Seconds()), *keys,
		100*(processor()-cpu).Seconds()/took.Seconds(), float64(written()-wrote)/took.Seconds()/1e6, size(*dir)/1e6,
		worst.Round(time.Millisecond), calls[len(calls)*999/1000], longest, slow, len(calls), peak()>>20, made>>20)
	return k.close()
}

// load writes the keys, unless the directory was given and has some, and then measures
// how long they take to be read into memory.
func load() error {
	if size(*dir) < 1e6 {
		if err := fill(); err != nil {
			return err
		}
	}
	cpu := processor()
	k, err := open()
	if err != nil {
		return err
	}
	fmt.Printf("%-8s %d keys: size %.0f MB, loaded in %v, %v of processor time\n",
		*engine, *keys, size(*dir)/1e6, k.load.Round(time.Millisecond), (processor() - cpu).Round(time.Millisecond))
	return k.close()
}

func fill() error {
	k, err := open()
	if err != nil {
		return err
	}
	ctx, begun, wrote, cpu := context.Background(), time.Now(), written(), processor()
	for i := range *keys {
		if _, err := take(ctx, k, "user-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	if err := k.close(); err != nil {
		return err
	}
	took, amount := time.Since(begun), float64(written()-wrote)
	state := float64(*keys) * (8 + 16) // a fingerprint and two words
	fmt.Printf("%-8s %d keys: written in %v, %v of processor time, %.0f MB to the disk, %.1f times the keys and states, size %.0f MB\n",
		*engine, *keys, took.Round(time.Millisecond), (processor() - cpu).Round(time.Millisecond), amount/1e6, amount/state, size(*dir)/1e6)
	return nil
}

// processor returns the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the most memory that this process has had since resetPeak.
func peak() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// resetPeak gives back what the process does not need, and makes peak begin again.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600)
}

// written returns how many bytes this process has had written to disks.
func written() int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// size returns the bytes of the files in dir.
func size(dir string) (n float64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += float64(info.Size())
			}
		}
		return nil
	})
	return n
}
