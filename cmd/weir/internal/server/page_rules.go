package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/cmd/weir/internal/page"
)

// Source implements [page.Sources].
func (s *namespaces) Source(name string) (page.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, of, err := s.source(name)
	if err == nil {
		of.ReadOnly = s.readOnly(r)
	}
	return of, err
}

// source returns the rules file of a namespace. It needs mu.
func (s *namespaces) source(name string) (*reloader, page.Source, error) {
	r := s.all[name]
	if r == nil {
		return nil, page.Source{}, &answer.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("namespace %.64q: not found", name)}
	}
	at := r.rules
	of := page.Source{Name: at.name(), Path: at.path, Lists: r.lists, Warnings: at.findings}
	switch {
	case at.koala:
		of.Format = "koala"
	case at.envoy != nil:
		of.Format = "envoyproxy/ratelimit"
	case at.stdin != nil:
		of.Text = at.stdin
	case at.path == "":
		of.Text = []byte(demo)
	default:
		var err error
		if of.Text, err = files.Rules(at.path); err != nil {
			return nil, of, &answer.Problem{Status: http.StatusConflict, Detail: "the rules file cannot be read: " + err.Error()}
		}
		of.InForce = r.isOpen() && at.hash(r.lists) == r.space.Source().Hash
		return r, of, nil
	}
	of.InForce = r.isOpen()
	return r, of, nil
}

// readOnly says why nobody can save the rules of r on the page, or returns an empty text. It needs mu.
func (s *namespaces) readOnly(r *reloader) string {
	at := r.rules
	switch {
	case at.pushed():
		return errPushed.Error()
	case at.koala || at.envoy != nil:
		return "the rules are in files of another format: change those files; weir import converts them"
	case at.stdin != nil:
		return errStdin.Error()
	case at.path == "":
		return "this is the demo rule, which is in no file: weir init writes a file to start from"
	case !s.cfg.PageWrite:
		return "the page may not save rules: start weir serve with --page-write"
	case !s.alone():
		return "several instances may share the store, and each has its own file: download the difference and bring it to all of them; or set --nodes 1"
	}
	if err := writable(at.path); err != nil {
		return "the file cannot be replaced: " + err.Error()
	}
	return ""
}

// alone reports whether no other instance counts in the same store.
func (s *namespaces) alone() bool {
	switch {
	case s.backends.shared == nil || s.cfg.Nodes == 1:
		return true
	case s.backends.here != nil:
		return s.backends.here.number() == 1
	}
	return false
}

// targetOf returns the file that path leads to. A link to it stays.
func targetOf(path string) (string, error) {
	full, err := filepath.EvalSymlinks(path)
	if err == nil && strings.Contains(full, string(filepath.Separator)+"..") {
		err = errors.New("it is mounted from a ConfigMap, which is changed elsewhere")
	}
	return full, err
}

// writable returns an error if the file at path cannot be replaced by another one.
func writable(path string) error {
	full, err := targetOf(path)
	if err != nil {
		return err
	}
	return canWrite(filepath.Dir(full))
}

// Save implements [page.Sources].
func (s *namespaces) Save(name string, text []byte, hash string, by audit.Caller) (page.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, of, err := s.source(name)
	if err != nil {
		return of, err
	}
	refuse := func(status int, problem string, args ...any) (page.Source, error) {
		return of, &answer.Problem{Status: status, Detail: fmt.Sprintf(problem, args...)}
	}
	if why := s.readOnly(r); why != "" {
		if status := http.StatusConflict; s.cfg.PageWrite {
			return refuse(status, "%s", why)
		}
		return refuse(http.StatusForbidden, "%s", why)
	}
	if of.Hash() != hash {
		return refuse(http.StatusPreconditionFailed, "the file was changed meanwhile: load it again, and make the change in its new text")
	}
	if files.HoldsSecrets(text) || koalafile.NotRules(of.Name, text) != nil {
		return refuse(http.StatusUnprocessableEntity, "the text is no rules file of weir")
	}
	l, err := r.rules.parse(text)
	if err != nil {
		return of, err
	}
	full, err := targetOf(of.Path)
	if err == nil {
		err = replace(full, of.Text, text)
	}
	switch {
	case errors.Is(err, syscall.EBUSY):
		return refuse(http.StatusConflict, "the file is mounted by itself, so that it cannot be replaced: mount its directory, or download the difference")
	case err != nil:
		return refuse(http.StatusConflict, "the file was not saved: %v", err)
	}
	if err := r.swap(l, nil, request{"page", by}); err != nil {
		return of, fmt.Errorf("the file was saved, but its rules are not in force yet: %w", err)
	}
	_, of, err = s.source(name)
	if err == nil {
		of.ReadOnly = s.readOnly(r)
	}
	return of, err
}

// replace makes text the content of the file at path, in one step, and keeps the text before as PATH.1, which was
// PATH.1 before as PATH.2, and so on.
func replace(path string, before, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	for n := page.Backups - 1; n > 0; n-- {
		if err := os.Rename(backup(path, n), backup(path, n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := files.Replace(backup(path, 1), before, info); err != nil {
		return err
	}
	return files.Replace(path, text, info)
}

func backup(path string, n int) string { return fmt.Sprintf("%s.%d", path, n) }
