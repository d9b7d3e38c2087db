package trial

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// MaxLog is the maximum size of a log, in bytes. Logs may be packed.
const MaxLog = 1 << 30

// MostRunning is how many trials run at the same time: one of each owner.
const MostRunning = 3

const (
	// mostTime is how long a trial may take, and kept how long its result is kept.
	mostTime = 30 * time.Minute
	kept     = 30 * time.Minute

	// mostKept is the maximum number of trials that are kept: the last one of each owner.
	mostKept = 16

	// maxResult is the maximum size of a result, and mostBytes that of all results that are kept, in bytes. Ten thousand
	// rules with keys of ordinary length have 5 MB.
	maxResult = 8 << 20
	mostBytes = 4 * maxResult
)

// Errors of [Runner].
var (
	ErrBusy     = errors.New("too many trials are running: wait until one ends, or cancel yours")
	ErrTooLarge = fmt.Errorf("the log is larger than %d MiB: try a part of it, or use weir compare", MaxLog>>20)
	ErrNone     = errors.New("no trial is running")
	errResult   = fmt.Errorf("the result is larger than %d MiB, because it has so many rules with long keys: change fewer rules at a time, or use weir compare", maxResult>>20)
	errCanceled = errors.New("cancelled")
	errTooLong  = fmt.Errorf("took longer than %v", mostTime)
	errDropped  = errors.New("the result is not kept any more")
	errClosed   = errors.New("the service ends")
)

// Runner runs trials, [MostRunning] at a time. Make one with [NewRunner]. It is safe for concurrent use.
type Runner struct {
	command func() *exec.Cmd
	dir     string
	memory  int64
	places  *access.Places

	mu      sync.Mutex
	last    map[owner]*run // guarded by mu
	working sync.WaitGroup // trials that have not ended
	closed  bool           // guarded by mu
}

// NewRunner returns a runner. command returns the command of a worker without its environment and its files. Logs
// are spooled to a file in dir; an empty text means the system's directory for temporary files. memory is how many bytes of
// memory a worker may take.
func NewRunner(command func() *exec.Cmd, dir string, memory int64) *Runner {
	return &Runner{command: command, dir: dir, memory: memory, places: access.NewPlaces(MostRunning), last: map[owner]*run{}}
}

// State is what a trial is doing.
type State string

// States.
const (
	Reading State = "reading" // the log is spooled
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Status is a trial.
type Status struct {
	ID        string    `json:"id"`
	Namespace string    `json:"namespace"`
	By        string    `json:"-"` // the name of the token
	Log       string    `json:"log"`
	State     State     `json:"state"`
	Started   time.Time `json:"started"`
	Progress
	Error string `json:"error,omitempty"`

	// Result reads the [Result] as JSON, or is nil. It returns an error once the runner has dropped the result.
	Result *io.SectionReader `json:"-"`
}

// owner is whose a trial is: a caller has one in each namespace.
type owner struct{ namespace, by string }

func (s *Status) owner() owner { return owner{s.Namespace, s.By} }

// run is one trial.
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	share  string      // of the caller, see [access.Places]
	forget *time.Timer // set when the trial has ended

	mu     sync.Mutex
	status Status // guarded by mu, but for the owner and the start
	result []byte // guarded by mu; nil once it is dropped
}

// ReadAt implements [io.ReaderAt] for the result. A slow reader keeps nothing in memory that the runner has dropped.
func (r *run) ReadAt(p []byte, at int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.result == nil {
		return 0, errDropped
	}
	return bytes.NewReader(r.result).ReadAt(p, at)
}

// size returns the size of the result, in bytes.
func (r *run) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.result)
}

func (r *run) change(f func(s *Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.status)
}

// Status returns the last trial of a caller in a namespace, and reports whether there is one.
func (r *Runner) Status(namespace, by string) (Status, bool) {
	r.mu.Lock()
	of := r.last[owner{namespace, by}]
	r.mu.Unlock()
	if of == nil {
		return Status{}, false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	s := of.status
	if of.result != nil {
		s.Result = io.NewSectionReader(of, 0, int64(len(of.result)))
	}
	return s, true
}

// Cancel ends the trial of a caller in a namespace, if it is running, and forgets its result.
func (r *Runner) Cancel(namespace, by string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.last[owner{namespace, by}]
	if of == nil {
		return ErrNone
	}
	of.cancel(errCanceled)
	if of.over() {
		r.dropLocked(of.status.owner())
	}
	return nil
}

// over reports whether the trial has ended.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status.State == Done || r.status.State == Failed
}

// Close cancels the trials that are running, and waits for their end.
func (r *Runner) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	for _, of := range r.last {
		of.cancel(errClosed)
		if of.forget != nil {
			of.forget.Stop()
		}
	}
	r.mu.Unlock()
	r.working.Wait()
}

// Start begins a trial and returns when its log is spooled. s has the namespace and the caller, whose share is that of
// [access.Holder.Share]. log writes the log; its error ends the trial and is returned. The error is [ErrBusy] while another
// trial of the caller runs in the namespace, or as many as may.
func (r *Runner) Start(s Status, share string, job *Job, log func(ctx context.Context, w io.Writer) error) (Status, error) {
	s.Log = job.Log
	of, err := r.begin(s, share)
	if err != nil {
		return s, err
	}
	spool, err := r.spool(of, job, log)
	if err != nil {
		r.end(of, nil, err)
		return s, err
	}
	of.change(func(now *Status) {
		now.State = Running
		s = *now
	})
	go func() { // until end
		result, err := r.work(of, spool)
		r.end(of, result, errors.Join(err, spool.close()))
	}()
	return s, nil
}

// begin makes a trial the last one of its owner.
func (r *Runner) begin(s Status, share string) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.last[s.owner()]
	switch {
	case r.closed:
		return nil, errClosed
	case before != nil && !before.over() || !r.places.Take(share, 1):
		return nil, ErrBusy
	}
	if before != nil {
		r.dropLocked(s.owner())
	} else if len(r.last) == mostKept {
		r.dropLocked(r.nextLocked(share, 1, func(*run) int { return 1 }))
	}
	s.ID, s.State, s.Started = rand.Text()[:8], Reading, time.Now().UTC()
	of := &run{share: share, status: s}
	of.ctx, of.cancel = context.WithCancelCause(context.Background())
	r.last[s.owner()] = of
	r.working.Add(1) // until end
	return of, nil
}

// nextLocked returns the owner of the trial that is dropped next, so that n more of what size counts can be kept for a
// share: of the share that then has most, the trial that began first, among those that have ended.
func (r *Runner) nextLocked(share string, n int, size func(*run) int) (next owner) {
	held := map[string]int{share: n}
	for _, of := range r.last {
		held[of.share] += size(of)
	}
	var first *run
	for whose, of := range r.last {
		if of.over() && (first == nil || cmp.Or(cmp.Compare(held[first.share], held[of.share]), of.status.Started.Compare(first.status.Started)) < 0) {
			next, first = whose, of
		}
	}
	return next
}

// makeRoomLocked drops results, so that one of n bytes can be kept for a share.
func (r *Runner) makeRoomLocked(share string, n int) {
	sum := n
	for _, of := range r.last {
		sum += of.size()
	}
	for sum > mostBytes {
		next := r.nextLocked(share, n, (*run).size)
		sum -= r.last[next].size()
		r.dropLocked(next)
	}
}

// end sets the result of a trial.
func (r *Runner) end(of *run, result []byte, err error) {
	defer r.working.Done()
	if cause := context.Cause(of.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		result = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeRoomLocked(of.share, len(result))
	of.change(func(s *Status) {
		of.result, s.State = result, Done
		if err != nil {
			s.State, s.Error = Failed, err.Error()
		}
	})
	of.cancel(nil)
	r.places.Leave(of.share, 1)
	if of.forget = time.AfterFunc(kept, func() { r.forget(of) }); r.closed {
		of.forget.Stop()
	}
}

// forget drops a trial that has ended.
func (r *Runner) forget(of *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if whose := of.status.owner(); r.last[whose] == of {
		r.dropLocked(whose)
	}
}

// dropLocked drops the last trial of an owner, which has ended.
func (r *Runner) dropLocked(whose owner) {
	of := r.last[whose]
	of.forget.Stop()
	of.change(func(*Status) { of.result = nil })
	delete(r.last, whose)
}

// spoolFile is a file that has no name any more, where that is possible.
type spoolFile struct{ *os.File }

// close closes the file, and removes it if it has a name.
func (f spoolFile) close() error {
	err := f.Close()
	_ = os.Remove(f.Name()) // it is gone, unless the system removes no open file
	return err
}

// spool writes the job and the log to a file.
func (r *Runner) spool(of *run, job *Job, log func(ctx context.Context, w io.Writer) error) (spoolFile, error) {
	file, err := os.CreateTemp(r.dir, "weir-trial-*")
	if err != nil {
		return spoolFile{}, fmt.Errorf("spooling the log: %w", err)
	}
	spool := spoolFile{file}
	_ = os.Remove(file.Name()) // close removes it where this fails
	job.Memory = r.memory
	err = writeJob(file, job)
	if err == nil {
		err = log(of.ctx, &limited{of: of, to: file})
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return spool, errors.Join(err, spool.close())
	}
	return spool, nil
}

// limited writes at most [MaxLog] bytes, until its trial is cancelled.
type limited struct {
	of *run
	to io.Writer
	n  int64
}

func (l *limited) Write(p []byte) (int, error) {
	if err := context.Cause(l.of.ctx); err != nil {
		return 0, err
	}
	if l.n += int64(len(p)); l.n > MaxLog {
		return 0, ErrTooLarge
	}
	l.of.change(func(s *Status) { s.Bytes = l.n })
	return l.to.Write(p)
}

// passed are the variables of the environment that a worker gets. It gets no tokens.
var passed = []string{"TZ", "ZONEINFO", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "HOME", "PATH"}

// work runs a worker, and returns its result.
func (r *Runner) work(of *run, spool spoolFile) ([]byte, error) {
	late := time.AfterFunc(mostTime, func() { of.cancel(errTooLong) })
	defer late.Stop()
	cmd := r.command()
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%d", r.memory/10*9))
	errs := &head{}
	cmd.Stdin, cmd.Stderr = spool.File, errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	stop := context.AfterFunc(of.ctx, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer stop()
	result, err := follow(of, out)
	if err != nil {
		_ = cmd.Process.Kill() // it may wait until somebody reads more
	}
	if ended := cmd.Wait(); err == nil && result == nil {
		err = failure(ended, strings.TrimSpace(errs.String()))
	}
	return result, err
}

// errKilled is the error of a worker that the system has ended.
var errKilled = errors.New("the trial was ended by the system, probably because there was no memory left: try a shorter log")

// failure returns the error of a worker that has printed neither a result nor an error. ended is the error of its
// command, and text what it has written to its standard error.
func failure(ended error, text string) error {
	if strings.Contains(fmt.Sprint(ended), "signal: killed") || strings.Contains(text, "out of memory") {
		return errKilled
	}
	return fmt.Errorf("the worker ended without a result: %s", cmp.Or(text, fmt.Sprint(ended)))
}

// follow reads what a worker prints.
func follow(of *run, out io.Reader) (result []byte, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxResult)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("a worker's answer: %w", err)
		}
		switch {
		case m.Error != "":
			return nil, errors.New(m.Error)
		case m.Result != nil:
			return m.Result, nil
		case m.Progress != nil:
			of.change(func(s *Status) { s.Progress = *m.Progress })
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, errResult
	}
	return nil, lines.Err()
}

// head keeps the first bytes that are written to it.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := 2<<10 - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
