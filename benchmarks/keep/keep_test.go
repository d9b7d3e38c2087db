// Package keep_test has benchmarks of keeping counters on a disk: package durable, and the same counters in pebble,
// bbolt and SQLite. It is a separate module, because SQLite and pebble are large.
package keep_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
)

var (
	writing = flag.Int("write", 1_000_000, "keys of BenchmarkWrite and BenchmarkTake")
	loading = flag.Int("load", 10_000_000, "keys of BenchmarkLoad")
	rate    = flag.Int("rate", 300_000, "updates a second of BenchmarkWrite")
	length  = flag.Duration("for", 20*time.Second, "how long BenchmarkWrite writes")
)

// interval is how long the engines collect changes for one batch, which is what package
// durable does by default.
const interval = 200 * time.Millisecond

// entry is a counter: the number of a key, its hits, and the end of its window.
type entry struct{ key, used, ends uint64 }

// engine keeps counters. Each has its fairest settings: keys of 8 bytes in their order, one
// batch for an interval, one sync for a batch, and no sync for other work of the engine.
type engine struct {
	commit func([]entry) error // synced
	read   func() (keys int, err error)
	close  func() error
}

var engines = []struct {
	name string
	open func(dir string) (engine, error)
}{
	{"none", func(string) (engine, error) {
		nothing := func() error { return nil }
		return engine{func([]entry) error { return nil }, func() (int, error) { return 0, nil }, nothing}, nil
	}},
	// A file that gets and syncs about as many bytes as durable writes: what the system takes
	// for the writing itself.
	{"baseline", func(dir string) (engine, error) {
		file, err := os.Create(filepath.Join(dir, "baseline"))
		bytes := make([]byte, 1_700_000)
		return engine{func([]entry) error {
			_, err := file.Write(bytes)
			return errors.Join(err, file.Sync())
		}, func() (int, error) { return 0, nil }, file.Close}, err
	}},
	{"durable", nil}, // keeps its counters itself
	{"pebble", openPebble}, {"bbolt", openBolt}, {"sqlite", openSQLite},
}

func (e entry) bytes() (key, state []byte) {
	return binary.BigEndian.AppendUint64(nil, e.key), binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, e.used), e.ends)
}

func openPebble(dir string) (engine, error) {
	db, err := pebble.Open(dir, &pebble.Options{MemTableSize: 64 << 20, Cache: pebble.NewCache(64 << 20), Logger: quiet{}, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		return engine{}, err
	}
	return engine{func(entries []entry) error {
		batch := db.NewBatch()
		for _, e := range entries {
			key, state := e.bytes()
			if err := batch.Set(key, state, nil); err != nil {
				return err
			}
		}
		return batch.Commit(pebble.Sync)
	}, func() (n int, err error) {
		it, err := db.NewIter(nil)
		if err != nil {
			return 0, err
		}
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		return n, it.Close()
	}, db.Close}, nil
}

// quiet is a logger of pebble.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

func openBolt(dir string) (engine, error) {
	db, err := bbolt.Open(filepath.Join(dir, "bolt"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return engine{}, err
	}
	name := []byte("posts")
	return engine{func(entries []entry) error {
		return db.Update(func(tx *bbolt.Tx) error {
			to, err := tx.CreateBucketIfNotExists(name)
			for _, e := range entries {
				key, state := e.bytes()
				err = errors.Join(err, to.Put(key, state))
			}
			return err
		})
	}, func() (n int, err error) {
		return n, db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(name).ForEach(func(_, _ []byte) error { n++; return nil })
		})
	}, db.Close}, nil
}

func openSQLite(dir string) (engine, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-65536)")
	if err == nil {
		_, err = db.Exec("create table if not exists posts (key integer primary key, state blob) without rowid")
	}
	return engine{func(entries []entry) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		set, err := tx.Prepare("insert into posts values (?, ?) on conflict do update set state = excluded.state")
		for _, e := range entries {
			if err == nil {
				_, state := e.bytes()
				_, err = set.Exec(int64(e.key), state)
			}
		}
		return errors.Join(err, tx.Commit())
	}, func() (n int, err error) {
		rows, err := db.Query("select key, state from posts")
		if err != nil {
			return 0, err
		}
		for rows.Next() {
			var key int64
			var state sql.RawBytes
			err = errors.Join(err, rows.Scan(&key, &state))
			n++
		}
		return n, errors.Join(err, rows.Err(), rows.Close())
	}, db.Close}, err
}

// counters is a limiter whose counters an engine keeps.
type counters struct {
	*weir.Limiter
	names   []string
	mu      sync.Mutex
	changed map[int]entry // since the last batch; nil: durable keeps them
	lag     func() time.Duration
	close   func() error
}

// open opens the counters of n keys in dir, which durable keeps without an engine.
func open(b *testing.B, openEngine func(dir string) (engine, error), dir string, n int) *counters {
	c := &counters{names: make([]string, n)}
	for i := range c.names {
		c.names[i] = fmt.Sprint("user-", i)
	}
	var s store.Store
	if openEngine == nil {
		d, err := durable.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		s, c.lag, c.close = d, func() time.Duration { return d.Stats().Lag }, d.Close
	} else {
		e, err := openEngine(dir)
		if err != nil {
			b.Fatal(err)
		}
		s = memstore.New()
		c.behind(b, e)
	}
	l, err := weir.NewLimiter(weir.Fixed(1<<40, 24*time.Hour), weir.WithStore(s), weir.WithName("posts"), weir.WithMaxKeys(int64(n)))
	if err != nil {
		b.Fatal(err)
	}
	c.Limiter = l
	return c
}

// behind gives what has changed to an engine, once in an interval, until c is closed.
func (c *counters) behind(b *testing.B, e engine) {
	c.changed = make(map[int]entry)
	var last time.Time // guarded by mu
	flush := func() {
		begun := time.Now()
		c.mu.Lock()
		changed := c.changed
		c.changed = make(map[int]entry, len(changed))
		c.mu.Unlock()
		entries := make([]entry, 0, len(changed))
		for _, e := range changed {
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(a, b entry) int { return int(a.key) - int(b.key) })
		if err := e.commit(entries); err != nil {
			b.Error(err)
		}
		c.mu.Lock()
		last = begun
		c.mu.Unlock()
	}
	last = time.Now()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(interval); ; {
			select {
			case <-tick.C:
				flush()
			case <-stop:
				flush()
				return
			}
		}
	}()
	c.lag = func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		return time.Since(last)
	}
	c.close = func() error {
		close(stop)
		<-ended
		return e.close()
	}
}

// take takes one hit of key i.
func (c *counters) take(b *testing.B, i int) {
	r, err := c.Allow(context.Background(), c.names[i])
	if err != nil || !r.Allowed {
		b.Fatalf("got %v, error %v", r, err)
	}
	if c.changed != nil {
		c.mu.Lock()
		c.changed[i] = entry{uint64(i), uint64(r.Used), uint64(r.ResetAfter)}
		c.mu.Unlock()
	}
}

// BenchmarkWrite makes updates of random keys at a fixed rate. Engine none counts in memory
// only: what the others take in addition is what keeping costs.
func BenchmarkWrite(b *testing.B) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			dir := b.TempDir()
			c := open(b, e.open, dir, *writing)
			for i := range c.names {
				c.take(b, i)
			}
			time.Sleep(2 * time.Second) // all of it is on the disk
			r, calls, worst := rand.New(rand.NewPCG(1, 2)), []time.Duration(nil), time.Duration(0)
			cpu, wrote, begun, updates := cpuTime(), written(), time.Now(), 0
			for time.Since(begun) < *length {
				for due := int(time.Since(begun).Seconds() * float64(*rate)); updates < due; updates++ {
					at := time.Now()
					if c.take(b, r.IntN(len(c.names))); updates%64 == 0 {
						calls = append(calls, time.Since(at))
					}
				}
				worst = max(worst, c.lag())
				time.Sleep(time.Millisecond)
			}
			took := time.Since(begun).Seconds()
			slices.Sort(calls)
			b.ReportMetric(float64(updates)/took, "updates/s")
			b.ReportMetric(100*(cpuTime()-cpu).Seconds()/took, "%CPU")
			b.ReportMetric((written()-wrote)/took/1e6, "written-MB/s")
			b.ReportMetric(size(dir)/1e6, "size-MB")
			b.ReportMetric(float64(worst.Milliseconds()), "lag-ms")
			b.ReportMetric(float64(calls[len(calls)*999/1000]), "p99.9-ns")
			b.ReportMetric(float64(calls[len(calls)-1]), "longest-ns")
			if err := c.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLoad writes keys, and opens them anew. durable reads them into memory; the other
// engines only read them.
func BenchmarkLoad(b *testing.B) {
	for _, e := range engines[2:] {
		b.Run(e.name, func(b *testing.B) {
			dir := b.TempDir()
			c, begun := open(b, e.open, dir, *loading), time.Now()
			for i := range c.names {
				c.take(b, i)
			}
			if err := c.close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(begun).Seconds(), "s-to-write")
			b.ReportMetric(size(dir)/1e6, "size-MB")
			cpu, begun := cpuTime(), time.Now()
			var n int
			var err error
			if e.open == nil {
				d, failed := durable.Open(dir)
				if n, err = len(c.names), failed; err == nil {
					err = d.Close()
				}
			} else if engine, failed := e.open(dir); failed == nil {
				n, err = engine.read()
				err = errors.Join(err, engine.close())
			}
			if err != nil || n != len(c.names) {
				b.Fatalf("got %d keys, error %v, want %d", n, err, len(c.names))
			}
			b.ReportMetric(time.Since(begun).Seconds(), "s-to-load")
			b.ReportMetric((cpuTime() - cpu).Seconds(), "CPU-s-to-load")
		})
	}
}

// BenchmarkTake calls POST /v1/take of the program weir without a directory and with one.
func BenchmarkTake(b *testing.B) {
	dir := b.TempDir()
	program, rules := filepath.Join(dir, "weir"), filepath.Join(dir, "rules.yaml")
	if out, err := exec.Command("go", "build", "-C", "../../cmd/weir", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(rules, []byte("rules:\n  - {name: posts, per: [user], limit: 1_000_000_000, window: {fixed: 24h}}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		more []string
	}{{"memory", nil}, {"data", []string{"--data", filepath.Join(dir, "data")}}} {
		b.Run(c.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			addr := l.Addr().String()
			_ = l.Close() // weir listens there
			cmd := exec.Command(program, append([]string{"serve", "--rules", rules, "--listen", addr, "--admin", "127.0.0.1:0", "--log-level", "error"}, c.more...)...)
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // always an error, because it was killed
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			take := func(user int) error {
				resp, err := client.Post("http://"+addr+"/v1/take", "application/json", strings.NewReader(fmt.Sprintf(`{"attributes":{"user":"user-%d"}}`, user)))
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if resp.StatusCode != http.StatusOK {
					err = errors.New(resp.Status)
				}
				return errors.Join(err, resp.Body.Close())
			}
			for end := time.Now().Add(10 * time.Second); take(0) != nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(rand.Uint64(), 1))
				for pb.Next() {
					if err := take(r.IntN(*writing)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// written returns how many bytes this process has had written to disks.
func written() (n float64) {
	text, _ := os.ReadFile("/proc/self/io") // 0 where the system does not tell
	_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// size returns the bytes of the files in dir.
func size(dir string) (n float64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += float64(info.Size())
			}
		}
		return nil
	})
	return n
}
