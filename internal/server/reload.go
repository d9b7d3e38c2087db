package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/httpapi"
	"github.com/weirhq/weir/internal/metrics"
	"github.com/weirhq/weir/rulefile"
)

// loaded is a rules file as it was read.
type loaded struct {
	*rulefile.File
	hash string // of the file and its lists, set even where they are wrong
}

// read reads the rules file at path, or the demo where there is none. What is
// hashed is what is parsed: each file is read once.
func read(path string) (loaded, error) {
	src := []byte(demo)
	if path != "" {
		var err error
		if src, err = os.ReadFile(path); err != nil {
			return loaded{hash: err.Error()}, err
		}
	}
	sum := sha256.New()
	sum.Write(src)
	file, err := rulefile.Parse(path, src, func(list string) ([]byte, error) {
		if !filepath.IsAbs(list) {
			list = filepath.Join(filepath.Dir(path), list)
		}
		b, err := os.ReadFile(list)
		sum.Write(b)
		return b, err
	})
	return loaded{file, hex.EncodeToString(sum.Sum(nil))}, err
}

// reloader puts rules in force. A file that is wrong changes nothing.
type reloader struct {
	engine  *weir.Engine
	path    string
	metrics *metrics.Metrics
	log     *slog.Logger
	current atomic.Pointer[httpapi.Source]

	mu    sync.Mutex // held during a reload
	tried string     // the hash of the last attempt; guarded by mu
	lists []string   // files that the rules in force read; guarded by mu
}

func newReloader(e *weir.Engine, first loaded, path string, m *metrics.Metrics, log *slog.Logger) *reloader {
	r := &reloader{engine: e, path: path, metrics: m, log: log}
	r.inForce(first)
	return r
}

// source is where the rules in force came from.
func (r *reloader) source() httpapi.Source { return *r.current.Load() }

func (r *reloader) inForce(l loaded) {
	name := r.path
	if name == "" {
		name = "demo"
	}
	now := time.Now()
	r.tried, r.lists = l.hash, l.Lists
	r.current.Store(&httpapi.Source{File: name, Hash: l.hash, Loaded: now})
	r.metrics.Loaded(l.Set.Len(), now)
}

var errNoFile = errors.New("there is no rules file to reload; start with --rules FILE")

// reload reads the rules again because somebody asked.
func (r *reloader) reload(asked string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" {
		return errNoFile
	}
	l, err := read(r.path)
	return r.swapLocked(l, err, asked)
}

// changed reads the rules again because a file may have changed. It does
// nothing when they are what the last attempt saw, good or bad.
func (r *reloader) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := read(r.path)
	if l.hash != r.tried {
		_ = r.swapLocked(l, err, "file") // it is logged, and nobody waits for it
	}
}

func (r *reloader) swapLocked(l loaded, err error, asked string) error {
	r.tried = l.hash
	if err != nil {
		r.metrics.Refused()
		r.log.Error("rules refused, the old ones stay", "asked", asked, "error", err)
		return err
	}
	r.engine.SetRules(l.Set)
	r.inForce(l)
	r.log.Info("rules loaded", "asked", asked, "rules", l.Set.Len(), "hash", l.hash)
	return nil
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

// refusal is err, from a reload, as an answer with every fault.
func refusal(err error) *httpapi.Problem {
	var faults rulefile.Faults
	switch {
	case errors.Is(err, errNoFile):
		return &httpapi.Problem{Status: http.StatusConflict, Detail: err.Error()}
	case !errors.As(err, &faults):
		return &httpapi.Problem{Status: http.StatusUnprocessableEntity, Detail: err.Error()}
	}
	p := &httpapi.Problem{
		Status: http.StatusUnprocessableEntity,
		Detail: "the rules file is wrong; the old rules stay in force",
	}
	for _, f := range faults {
		line, _, _ := strings.Cut(f.Error(), "\n") // without the source and the caret
		p.Faults = append(p.Faults, line)
	}
	return p
}
