package server

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile/files"
)

// place is where the rules of all namespaces are: one file, or a directory with a
// file for each.
type place struct {
	dir  string  // empty: one file
	file rulesAt // of the namespace default
}

// placeOf returns the place that cfg names.
func placeOf(cfg config.Config) (place, error) {
	if cfg.Koala != "" || cfg.Rules == "" {
		return place{file: rulesOf(cfg)}, nil
	}
	info, err := files.Stat(cfg.Rules)
	switch {
	case errors.Is(err, files.ErrSlow):
		return place{}, err
	case err == nil && info.IsDir():
		return place{dir: cfg.Rules}, nil
	}
	return place{file: rulesOf(cfg)}, nil
}

// path returns the file or the directory, or an empty string for the demo.
func (p place) path() string {
	if p.dir != "" {
		return p.dir
	}
	return p.file.path
}

// whole returns the reach of an authenticator for calls that concern all namespaces. If there
// is only the namespace default, its holders may make them.
func (p place) whole() access.Reach {
	if p.dir == "" {
		return access.ReachDefault
	}
	return access.ReachAll
}

// attempt is what reading the rules of one namespace has given.
type attempt struct {
	name string
	at   rulesAt
	loaded
	err error
}

// list returns the files of all namespaces. bad are faults of files that cannot be
// namespaces.
func (p place) list() (all []attempt, bad fault.List, err error) {
	if p.dir == "" {
		return []attempt{{name: namespace.Default, at: p.file}}, nil, nil
	}
	found, bad, err := namespace.Files(p.dir)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, bad, errors.Join(fmt.Errorf("%s: holds no rules file: want one NAME.yaml for each namespace, such as default.yaml", p.dir), bad.Err())
	}
	for _, f := range found {
		all = append(all, attempt{name: f.Name, at: rulesAt{path: f.Path}})
	}
	return all, bad, nil
}

// read reads the rules of all namespaces before they are served. The error is that of
// a place where no rules can be read at all.
func (p place) read() (all []attempt, bad fault.List, err error) {
	all, bad, err = p.list()
	if err != nil {
		return nil, nil, err
	}
	var faults []error
	for i := range all {
		a := &all[i]
		if a.loaded, a.err = a.at.read(); a.err != nil {
			faults = append(faults, a.err)
		}
	}
	if len(faults) == len(all) {
		return nil, nil, joined(faults)
	}
	return all, bad, nil
}

// joined returns all faults as one list, or all errors.
func joined(errs []error) error {
	var faults fault.List
	for _, err := range errs {
		of := fault.Of(err)
		if of == nil {
			return errors.Join(errs...)
		}
		faults = append(faults, of...)
	}
	return faults.Err()
}
