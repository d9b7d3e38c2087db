package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is the delay between a change and reading it, so that the change can
// be finished.
const settle = 200 * time.Millisecond

// watch reloads the rules when their file or one of its lists may have changed.
//
// It watches directories. Editors replace files, and Kubernetes swaps a link
// beside them, so a watch on the file itself would stay on the old one. The
// kind of event does not matter; the hash of the content decides.
//
// When every is not 0, watch also checks the files at that interval.
func (r *reloader) watch(ctx context.Context, every time.Duration) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Error("rules are not watched", "error", err)
		return
	}
	defer w.Close()

	due := time.After(0) // for changes before the watch began
	seen := r.stamp()
	var look <-chan time.Time
	if every > 0 {
		tick := time.NewTicker(every)
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.Events:
			if due == nil && event.Op != fsnotify.Chmod {
				due = time.After(settle)
			}
		case <-look:
			if stamp := r.stamp(); due == nil && stamp != seen {
				seen, due = stamp, time.After(settle)
			}
		case err := <-w.Errors:
			r.log.Warn("watching rules", "error", err)
			due = time.After(settle) // events may have been lost
		case <-due:
			due = nil
			r.changed()
			if r.follow(w) {
				due = time.After(settle) // for changes before the directory was watched
			}
		}
	}
}

// files returns the files that the last attempt read, including those that are
// missing.
func (r *reloader) files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(slices.Clone(r.lists), r.rules.path)
}

// stamp returns a text that changes when the size or the date of one of the
// files does.
func (r *reloader) stamp() string {
	var all strings.Builder
	for _, file := range r.files() {
		info, err := os.Stat(file)
		if err != nil {
			fmt.Fprintln(&all, err)
			continue
		}
		fmt.Fprintln(&all, file, info.Size(), info.ModTime().UnixNano())
	}
	return all.String()
}

// follow watches the directories on which the files depend now, and no others.
// It reports whether one of them is new.
func (r *reloader) follow(w *fsnotify.Watcher) (grown bool) {
	watched := w.WatchList()
	var wanted []string
	for _, file := range r.files() {
		for _, dir := range homes(file) {
			dir, err := watchNearest(w, dir)
			if err != nil {
				r.log.Warn("directory is not watched", "dir", dir, "error", err)
				continue
			}
			wanted = append(wanted, dir)
			grown = grown || !slices.Contains(watched, dir)
		}
	}
	for _, dir := range watched {
		if !slices.Contains(wanted, dir) {
			_ = w.Remove(dir) // it may have gone by itself
		}
	}
	return grown
}

// watchNearest watches dir, or, if it does not exist, the nearest existing
// directory above it, in which dir can appear. It returns the directory that it
// watches.
func watchNearest(w *fsnotify.Watcher, dir string) (string, error) {
	for {
		err := w.Add(dir)
		above := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || above == dir {
			return dir, err
		}
		dir = above
	}
}

// homes returns the directories that hold file and every link on the way to it.
// A change in one of them can make the path lead to another file.
func homes(file string) []string {
	dirs := []string{filepath.Dir(file)}
	todo := []string{filepath.Clean(file)}
	for len(todo) > 0 && len(dirs) < maxHomes {
		whole := todo[0]
		todo = todo[1:]
		for path := whole; path != filepath.Dir(path); path = filepath.Dir(path) {
			target, err := os.Readlink(path)
			if err != nil {
				continue // not a link
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			target += whole[len(path):]
			todo = append(todo, target)
			dirs = append(dirs, filepath.Dir(path), filepath.Dir(target))
		}
	}
	return dirs
}

// maxHomes stops the search when links lead in a circle.
const maxHomes = 64
