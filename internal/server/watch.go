package server

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change gets to be finished before it is read.
const settle = 200 * time.Millisecond

// watch reloads when the rules file or one of its lists may have changed.
//
// It watches directories: editors replace files, and Kubernetes swaps a link
// beside them, so a watch on the file itself would hold on to the old one. What
// happened in a directory does not matter; the content's hash decides.
func (r *reloader) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Error("rules are not watched", "error", err)
		return
	}
	defer w.Close()
	r.follow(w)
	r.changed() // what changed before the watch began

	var due <-chan time.Time // nil: nothing happened
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.Events:
			if due == nil && event.Op != fsnotify.Chmod {
				due = time.After(settle)
			}
		case err := <-w.Errors:
			r.log.Warn("watching rules", "error", err)
			due = time.After(settle) // events may have been lost
		case <-due:
			due = nil
			r.changed()
			r.follow(w)
		}
	}
}

// follow watches the directories of all files, also those that links lead to.
func (r *reloader) follow(w *fsnotify.Watcher) {
	r.mu.Lock()
	files := append(slices.Clone(r.lists), r.path)
	r.mu.Unlock()
	for _, file := range files {
		dirs := []string{filepath.Dir(file)}
		if target, err := filepath.EvalSymlinks(file); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
		for _, dir := range dirs {
			if err := w.Add(dir); err != nil {
				r.log.Warn("directory is not watched", "dir", dir, "error", err)
			}
		}
	}
}
