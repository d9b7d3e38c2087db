package trial

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

// Work runs the job in spool, and prints progress, and the result or the error, to out. It returns an error if it
// cannot print, because the service has ended.
func Work(ctx context.Context, spool *os.File, out io.Writer) error {
	behave()
	w := &worker{out: json.NewEncoder(out)}
	result, err := w.run(ctx, spool)
	if w.broken != nil {
		return w.broken
	}
	if err != nil {
		return w.out.Encode(message{Error: err.Error()})
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return w.out.Encode(message{Result: text})
}

// worker is a running trial.
type worker struct {
	out      *json.Encoder
	broken   error        // of out
	bytes    atomic.Int64 // of the log, read by another goroutine
	progress Progress
	told     time.Time
	memory   int64 // bytes at which it gives up
}

// run runs the job in spool.
func (w *worker) run(ctx context.Context, spool *os.File) (*Result, error) {
	began := time.Now()
	job, start, err := readJob(spool)
	if err != nil {
		return nil, err
	}
	w.memory = job.Memory
	info, err := spool.Stat()
	if err != nil {
		return nil, err
	}
	before, err := job.rules(job.Before)
	if err != nil {
		return nil, fmt.Errorf("the rules in force: %w", err)
	}
	after, err := job.rules(job.After)
	if err != nil {
		return nil, err
	}
	spec, err := logs.Parse("format", job.Format)
	if err != nil {
		return nil, err
	}
	format, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	size := info.Size() - start
	log := replay.Log{
		Name: job.Log,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(spool, start, size)), nil },
		Told: func(n int) { w.bytes.Add(int64(n)) }, // a block ahead
	}
	source := replay.Logs{Files: []replay.Log{log}, Format: format}
	swept := job.swept(before.Set, after.Set)
	w.progress.Total = size * int64(1+len(swept))
	if !job.HideKeys {
		w.progress.Total += size // for the tests
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := []replay.Option{replay.WithProgress(func(lines int64) {
		w.progress.Lines = lines
		if err := w.tell(); err != nil {
			cancel(err)
		}
	})}
	if job.HideKeys {
		options = append(options, replay.WithTop(0), replay.WithExamples(0))
	}
	failed := func(err error) error {
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	result := &Result{Suggestions: []*replay.Suggestion{}, Quotas: map[string][2]int64{}}
	if result.Comparison, err = replay.Compare(ctx, before.Set, after.Set, source, options...); err != nil {
		return nil, failed(err)
	}
	if result.Comparison.Lines == 0 {
		return nil, errors.New("the log has no line")
	}
	if !job.HideKeys {
		if result.Tests, err = job.tests(ctx, before, after, result.Comparison, source); err != nil {
			return nil, failed(err)
		}
	}
	for i, name := range swept {
		quotas := [2]int64{quotaOf(before.Set, name), quotaOf(after.Set, name)}
		s, err := replay.Suggest(ctx, after.Set, replay.Sweep{Rule: name, Quotas: candidates(quotas)}, source, options...)
		if err = failed(err); errors.Is(err, errMemory) { // each quota has a state of each key
			result.Unswept = swept[i:]
			break
		} else if err != nil {
			return nil, err
		}
		if job.HideKeys {
			for i := range s.Windows {
				s.Windows[i].Peaks.Top = []replay.Peak{}
			}
		}
		result.Suggestions, result.Quotas[name] = append(result.Suggestions, s), quotas
	}
	if job.HideKeys {
		result.Comparison.BadLines = []replay.BadLine{}
		for _, s := range result.Suggestions {
			s.BadLines = []replay.BadLine{}
		}
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}

// errMemory is wrapped in the error of a trial that needs too much memory.
var errMemory = errors.New("because the log has so many keys: try a shorter one")

// tell prints the progress, if it is time, and returns an error if the trial should end.
func (w *worker) tell() error {
	if memory() > w.memory {
		return fmt.Errorf("the trial needs more than %d MiB of memory, %w", w.memory>>20, errMemory)
	}
	if time.Since(w.told) < progressEvery {
		return nil
	}
	w.told, w.progress.Bytes = time.Now(), w.bytes.Load()
	w.broken = w.out.Encode(message{Progress: &w.progress})
	return w.broken
}

// memory returns the memory of this process that is in use, in bytes.
func memory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()) - int64(s[1].Value.Uint64())
}

// rules parses the text of a rules file.
func (j *Job) rules(text string) (*rulefile.File, error) {
	return rulefile.Parse(j.File, []byte(text), func(list string) ([]byte, error) { return files.List(files.RelativeTo(j.File, list)) })
}

// swept returns the names of the limits for which other quotas are measured.
func (j *Job) swept(before, after *rule.Set) (names []string) {
	for i := range after.Len() {
		r := after.Rule(i)
		if quotaOf(after, r.Name) == 0 {
			continue
		}
		if len(j.Rules) > 0 {
			if slices.Contains(j.Rules, r.Name) {
				names = append(names, r.Name)
			}
			continue
		}
		if at, ok := before.Find(r.Name); len(names) < mostSwept && (!ok || quotaOf(before, r.Name) != quotaOf(after, r.Name) || before.Rule(at).Window != r.Window) {
			names = append(names, r.Name)
		}
	}
	return names
}

// quotaOf returns the quota of the limit called name that can be measured: 0 if there is none, or if it is not one
// number.
func quotaOf(rules *rule.Set, name string) int64 {
	i, ok := rules.Find(name)
	if !ok {
		return 0
	}
	r := rules.Rule(i)
	if r.Kind() != rule.KindLimit || r.Mode == rule.Off || r.Quota.Attribute() != "" || r.Window.Kind == window.KindHeld {
		return 0
	}
	return r.Quota.Value
}

// candidates returns quotas around those of a limit, and a half of the first one, ascending: from a tenth of the smaller one to four times the
// larger one, with all numbers where these are small.
func candidates(quotas [2]int64) []int64 {
	low, high := quotas[0], quotas[1]
	if low == 0 || high == 0 {
		low, high = max(low, high), max(low, high)
	}
	low, high = max(1, min(low, high)/10), max(quotas[0], quotas[1], 5)*4
	const most = 40
	var list []int64
	ratio := math.Pow(float64(high)/float64(low), 1.0/(most-1))
	for n := float64(low); len(list) < most && n <= float64(high)*1.0001; n *= ratio {
		next := int64(math.Round(n))
		if len(list) > 0 && next <= list[len(list)-1] {
			next = list[len(list)-1] + 1
		}
		if next > high {
			break
		}
		list, n = append(list, next), max(n, float64(next))
	}
	for _, q := range []int64{quotas[0], quotas[1], quotas[0] / 2} {
		if q > 0 && !slices.Contains(list, q) {
			list = append(list, q)
		}
	}
	slices.Sort(list)
	return list
}

// writeJob writes the head of a spool file.
func writeJob(w io.Writer, job *Job) error {
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(text))), text...))
	return err
}

// readJob reads the head of a spool file. The log starts at start.
func readJob(spool io.ReaderAt) (job Job, start int64, err error) {
	var head [8]byte
	if _, err := spool.ReadAt(head[:], 0); err != nil {
		return job, 0, err
	}
	n := int64(binary.BigEndian.Uint64(head[:]))
	start = int64(len(head)) + n
	err = json.NewDecoder(bufio.NewReader(io.NewSectionReader(spool, int64(len(head)), n))).Decode(&job)
	return job, start, err
}
