package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

// settle is how long the files must stay as they are before they are read, so
// that a change can be finished. settleMost is the longest such wait: a file that
// changes all the time is read, too.
const (
	settle     = 200 * time.Millisecond
	settleMost = 10 * time.Second
)

// watched is what watch reads again.
type watched interface {
	// files returns the files that the last attempt read, including those that
	// are missing.
	files() []string

	// changed is called after a file may have changed.
	changed()
}

// watch calls subject.changed when one of its files may have changed, until ctx
// is done.
//
// It watches directories. Editors replace files, and Kubernetes swaps a link
// next to them, so a watch on the file itself would stay on the old one. The
// kind of event does not matter; subject decides by the content.
//
// When every is not 0, watch also checks the files at that interval.
func watch(ctx context.Context, every time.Duration, subject watched, log *slog.Logger) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log.Error("files are not watched", "error", err)
		return
	}
	defer w.Close()

	q := newCalm(func() string { return stamp(subject) })
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
			if event.Op != fsnotify.Chmod {
				q.wait()
			}
		case <-look:
			if stamp(subject) != q.seen {
				q.wait()
			}
		case err := <-w.Errors:
			log.Warn("watching files", "error", err)
			q.wait() // events may have been lost
		case <-q.due:
			if !q.over() {
				continue
			}
			subject.changed()
			if follow(w, subject, log) {
				q.wait() // for changes before the directory was watched
			}
		}
	}
}

// calm waits after a change until the files have stayed the same for settle, so that
// a file that is being written is not read before its end.
type calm struct {
	stamp func() string    // changes when the files do
	seen  string           // the last stamp
	first time.Time        // when the wait began
	due   <-chan time.Time // when to ask over; nil when nothing has changed
}

// newCalm returns a calm that is due at once.
func newCalm(stamp func() string) *calm {
	return &calm{stamp: stamp, seen: stamp(), first: time.Now(), due: time.After(0)}
}

// wait begins to wait, unless q waits already.
func (q *calm) wait() {
	if q.due == nil {
		q.seen, q.first, q.due = q.stamp(), time.Now(), time.After(settle)
	}
}

// over reports whether the files have stayed the same since q was last asked, or
// have changed for settleMost. Otherwise q goes on waiting.
func (q *calm) over() bool {
	if now := q.stamp(); now != q.seen && time.Since(q.first) < settleMost {
		q.seen, q.due = now, time.After(settle)
		return false
	}
	q.due = nil
	return true
}

// stamp returns a text that changes when the size or the date of one of the
// files does.
func stamp(subject watched) string {
	var all strings.Builder
	for _, file := range subject.files() {
		info, err := files.Stat(file)
		if err != nil {
			fmt.Fprintln(&all, err)
			if errors.Is(err, files.ErrSlow) {
				break // the next file would take as long
			}
			continue
		}
		fmt.Fprintln(&all, file, info.Size(), info.ModTime().UnixNano())
	}
	return all.String()
}

// follow watches the directories on which the files depend now, and no others.
// It reports whether one of them is new.
func follow(w *fsnotify.Watcher, subject watched, log *slog.Logger) (grown bool) {
	watched := w.WatchList()
	var wanted []string
	for _, file := range subject.files() {
		for _, dir := range homes(file) {
			dir, err := watchNearest(w, dir)
			if err != nil {
				log.Warn("directory is not watched", "dir", dir, "error", err)
				continue
			}
			wanted = append(wanted, dir)
			grown = grown || !slices.Contains(watched, dir)
		}
	}
	for _, dir := range watched {
		if !slices.Contains(wanted, dir) {
			_ = w.Remove(dir) // it may be removed already
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
