package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/answer"
	koalaapi "github.com/weirhq/weir/internal/koala/api"
	"github.com/weirhq/weir/internal/metrics"
	"github.com/weirhq/weir/internal/namespace"
)

// reloader puts rules in force. A file with a fault changes nothing.
type reloader struct {
	space   *namespace.Namespace
	rules   rulesAt
	metrics *metrics.Metrics
	log     *slog.Logger
	doors   *doors

	mu    sync.Mutex // held during a reload
	tried string     // the hash of the last attempt; guarded by mu
	lists []string   // files that the last attempt read; guarded by mu
	known []string   // absolute paths of the lists of the rules in force; guarded by mu
}

// newReloader returns a reloader for a namespace whose rules are first.
func newReloader(space *namespace.Namespace, first loaded, rules rulesAt, m *metrics.Metrics, doors *doors, log *slog.Logger) *reloader {
	r := &reloader{space: space, rules: rules, metrics: m, doors: doors, log: log}
	r.inForce(first)
	return r
}

// inForce records that l is in force.
func (r *reloader) inForce(l loaded) {
	name := r.rules.path
	if name == "" {
		name = "demo"
	}
	now := time.Now()
	r.tried, r.lists, r.known = l.hash, l.lists, nil
	for _, list := range l.lists {
		if absolute, err := filepath.Abs(list); err == nil {
			r.known = append(r.known, absolute)
		}
	}
	r.space.SetSource(namespace.Source{File: name, Hash: l.hash, Loaded: now})
	r.metrics.Loaded(l.set.Len(), now)
	if n := len(l.warnings); n > 0 {
		about := "some rules may not mean what they say: run weir check"
		if r.rules.koala {
			about = "some rules differ from koala: run weir check"
		}
		r.log.Warn(about, "warnings", n, "first", l.warnings[0].Summary())
	}
}

var errNoFile = errors.New("no rules file to reload; start weir with --rules FILE")

// reload reads the rules, the tokens and the certificates again on request.
// asked names the source of the request in the log.
func (r *reloader) reload(asked string) error {
	r.doors.reload()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules.path == "" {
		return errNoFile
	}
	l, err := r.rules.read()
	return r.swapLocked(l, err, asked)
}

// changed reads the rules again because a file may have changed. It does
// nothing when the content is that of the last attempt, whether that succeeded
// or not.
func (r *reloader) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.rules.read()
	if l.hash != r.tried {
		_ = r.swapLocked(l, err, "file") // the error is logged, and has no other reader
	}
}

// rewrite replaces the rules file with text and puts it in force. Nothing
// changes when text is wrong or the file cannot be written: rules in force
// without a file would be lost with the process.
func (r *reloader) rewrite(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.rules.parse(text, r.rules.below(r.known))
	if err != nil {
		return &koalaapi.RulesError{Err: err}
	}
	if err := r.rules.replace(text); err != nil {
		return err
	}
	return r.swapLocked(l, nil, "rewrite")
}

// swapLocked puts l in force, unless err reports that it could not be read.
func (r *reloader) swapLocked(l loaded, err error, asked string) error {
	r.tried, r.lists = l.hash, l.lists
	if err == nil {
		err = r.space.Engine().SetRules(l.set)
	}
	if err != nil {
		r.metrics.Refused()
		r.log.Error("rules refused; the old rules stay in force", "asked", asked, "error", err)
		return err
	}
	r.inForce(l)
	r.log.Info("rules loaded", "asked", asked, "rules", l.set.Len(), "hash", l.hash)
	return nil
}

// files implements watched.
func (r *reloader) files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(slices.Clone(r.lists), r.rules.path)
}

// onSignal reloads for each of signals, which are SIGHUP.
func (r *reloader) onSignal(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			if err := r.reload("SIGHUP"); errors.Is(err, errNoFile) {
				r.log.Warn(err.Error())
			}
		}
	}
}

// refusal returns the answer to a reload that failed, with every fault.
func refusal(err error) *answer.Problem {
	faults := summaries(err)
	switch {
	case errors.Is(err, errNoFile):
		return &answer.Problem{Status: http.StatusConflict, Detail: err.Error()}
	case len(faults) == 0:
		return &answer.Problem{Status: http.StatusUnprocessableEntity, Detail: err.Error() + "; the old rules stay in force"}
	}
	return &answer.Problem{
		Status: http.StatusUnprocessableEntity,
		Detail: "the rules file has faults; the old rules stay in force",
		Faults: faults,
	}
}

// summaries returns the faults in err, one line each.
func summaries(err error) (lines []string) {
	for _, f := range fault.Of(err) {
		lines = append(lines, f.Summary())
	}
	return lines
}
