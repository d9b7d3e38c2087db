package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// floorLog names the environment variable that makes the program the floor of the
// section replay: it has the path of the log.
const floorLog = "WEIR_BENCHMARKS_REPLAY"

// replayFloor does only what a replay of examples/wordpress.yaml needs: it finds the
// fields of each line that the rules use, asks the same store about the rules, which are
// written here, and counts what is denied. It does not check lines, and has no keys,
// times and examples to report.
type replayFloor struct {
	store  *memstore.Store
	now    window.Instant
	minute string // of the line before, as text
	start  window.Instant
	rules  [5]store.Op
	denied int
}

// floorMain runs the floor over the log at path, and prints how many lines it denies. The
// row measures a process that does nothing else.
func floorMain(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	denied, err := runFloor(file)
	fmt.Println(denied)
	return err
}

// runFloor returns how many lines of a log are denied.
func runFloor(log io.Reader) (denied int, err error) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		return 0, err
	}
	var f replayFloor
	f.store = memstore.New(memstore.WithClock(func() window.Instant { return f.now }))
	defer f.store.Close()
	for i, l := range []window.Limit{
		{Quota: 5, Window: window.Sliding(time.Minute)},
		{Quota: 20, Window: window.Sliding(time.Hour)},
		{Quota: 300, Window: window.Sliding(time.Minute)},
		{Quota: 100, Window: window.Sliding(time.Hour), Measure: window.Distinct},
		{Quota: 500_000_000, Window: window.Calendar(window.Day, zone), Measure: window.Sum},
	} {
		limit, err := window.Compile(l)
		if err != nil {
			return 0, err
		}
		name := fmt.Sprint("rule-", i)
		f.rules[i].Space, f.rules[i].Limit = store.NewSpace("", name, name, 0), limit
	}
	buffer, kept := make([]byte, 256<<10), 0
	for {
		n, err := log.Read(buffer[kept:])
		text := buffer[:kept+n]
		whole := bytes.LastIndexByte(text, '\n') + 1
		for rest := unsafe.String(unsafe.SliceData(text), whole); rest != ""; {
			end := strings.IndexByte(rest, '\n')
			if err := f.line(rest[:end]); err != nil {
				return f.denied, err
			}
			rest = rest[end+1:]
		}
		kept = copy(buffer, text[whole:])
		if errors.Is(err, io.EOF) {
			return f.denied, nil
		}
		if err != nil {
			return f.denied, err
		}
	}
}

// line decides a line of the combined format.
func (f *replayFloor) line(line string) error {
	ip, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, "[")
	if err := f.read(rest[:26]); err != nil {
		return err
	}
	_, rest, _ = strings.Cut(rest[26:], `"`)
	request, rest, _ := strings.Cut(rest, `"`)
	method, target, _ := strings.Cut(request, " ")
	target, _, _ = strings.Cut(target, " ")
	path, _, _ := strings.Cut(target, "?")
	size, _, _ := strings.Cut(rest[len(" 200 "):], " ")

	var room [64]byte
	key := append(append(room[:0], byte(len(ip))), ip...) // as rules make it
	from := 2
	if method == "POST" && path == "/wp-login.php" {
		from = 0
	}
	for i := from; i < len(f.rules); i++ {
		op := &f.rules[i]
		op.Key, op.N = key, 1
		switch i {
		case 3:
			op.Member = append(op.Member[:0], path...)
		case 4:
			op.N = 0
			for k := range len(size) {
				op.N = 10*op.N + int64(size[k]-'0')
			}
		}
	}
	ops := f.rules[from:]
	if err := f.store.Call(context.Background(), store.Take, ops); err != nil {
		return err
	}
	for i := range ops {
		if !ops[i].Result.Allowed {
			f.denied++
			break
		}
	}
	return nil
}

// read sets the time to text, such as 01/Mar/2026:00:00:00 +0000.
func (f *replayFloor) read(text string) error {
	if minute := text[:17]; minute != f.minute {
		t, err := time.Parse("02/Jan/2006:15:04:05 -0700", minute+":00"+text[20:])
		if err != nil {
			return err
		}
		f.minute, f.start = strings.Clone(minute), window.At(t)
	}
	seconds := time.Duration(text[18]-'0')*10 + time.Duration(text[19]-'0')
	f.now = f.start.Add(seconds * time.Second)
	return nil
}
