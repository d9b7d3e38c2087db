package server

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// reloader puts the rules of one namespace in force. A file with a fault changes
// nothing. Its methods must not be called concurrently.
type reloader struct {
	rules   rulesAt
	numbers *metrics.Namespace
	log     *slog.Logger
	space   *namespace.Namespace // has no engine until the rules could be read

	// open makes the engine of the namespace.
	open func(*rule.Set) (*namespace.Namespace, error)

	audit *audit.Trail // or nil

	// loaded is called with rules that are in force.
	loaded func(*rule.Set)

	// changedTo is called with the hashes of the rules before and in force, after a reload.
	changedTo func(before, hash string)

	// publish lets calls reach the namespace.
	publish func()

	tried string   // the hash of the last attempt
	lists []string // files that the last attempt read
}

// isOpen reports whether there are rules in force.
func (r *reloader) isOpen() bool { return r.space.Engine() != nil }

// swap puts l in force, unless err reports that it could not be read. asked names
// the source of the request in the log.
func (r *reloader) swap(l loaded, err error, asked request) error {
	r.tried, r.lists = l.hash, l.lists
	first := !r.isOpen()
	before := r.space.Source()
	switch {
	case err != nil:
	case first:
		var space *namespace.Namespace
		if space, err = r.open(l.set); err == nil {
			r.space = space
			if r.rules.envoy != nil {
				r.rules.envoy.now.Store(l.envoy) // before calls can need them
			}
			r.publish() // before the log has the line
		}
	default:
		err = r.space.Engine().SetRules(l.set)
	}
	if err != nil {
		r.numbers.Refused()
		r.record(audit.RulesRefused, asked, before, map[string]any{"asked": asked.text, "error": err.Error()})
		stay := "the old rules stay in force"
		if first {
			stay = "the namespace has none in force"
		}
		r.log.Error("rules refused; "+stay, "asked", asked.text, "error", err)
		return err
	}
	r.inForce(l)
	if asked.text != atStart {
		r.changedTo(before.Hash, l.hash)
		r.record(audit.RulesChanged, asked, before, map[string]any{"asked": asked.text, "rules": l.set.Len(), "hash": l.hash})
		r.log.Info("rules loaded", "asked", asked.text, "rules", l.set.Len(), "hash", l.hash)
	}
	return nil
}

// request is what makes the service read rules: its text in the log, and who it is, if a caller asks.
type request struct {
	text string
	by   audit.Caller
}

// atStart is the source of the first attempt in the log.
const atStart = "start"

// record records a change of the rules.
func (r *reloader) record(action audit.Action, asked request, before namespace.Source, after map[string]any) {
	e := audit.Entry{Action: action, By: asked.by}
	e.After, _ = json.Marshal(after) // no value in it can fail
	if before.Hash != "" {
		e.Before, _ = json.Marshal(map[string]any{"hash": before.Hash})
	}
	r.audit.Add(r.space.Name(), e)
}

// inForce records that l is in force.
func (r *reloader) inForce(l loaded) {
	now := time.Now()
	r.space.SetSource(namespace.Source{File: r.rules.name(), Hash: l.hash, Loaded: now})
	r.numbers.Loaded(l.set.Len(), now)
	r.loaded(l.set)
	if r.rules.envoy != nil {
		r.rules.envoy.now.Store(l.envoy)
	}
	if n := len(l.warnings); n > 0 {
		about := "some rules may not mean what they say: run weir check"
		if r.rules.koala {
			about = "some rules differ from koala: run weir check"
		}
		if r.rules.envoy != nil {
			about = "some settings in the files have no effect: run weir import envoy"
		}
		r.log.Warn(about, "warnings", n, "first", l.warnings[0].Summary())
	}
}

// Errors of a reload without a file.
var (
	errNoFile = errors.New("no rules file to reload; start weir with --rules FILE")
	errPushed = errors.New("the rules come from the xDS server, which sends them when they change")
	errStdin  = errors.New("the rules are from the standard input, which ends after it was read; start weir with --rules FILE to reload them")
)

// refusal returns the answer to a reload that failed, with every fault.
func refusal(err error) *answer.Problem {
	var access *accessError
	faults := summaries(err)
	p := &answer.Problem{Status: http.StatusUnprocessableEntity, Detail: "the rules file has errors; the old rules stay in force", Errors: faults}
	switch {
	case errors.As(err, &access):
		p.Detail, p.Errors = "tokens or certificates have errors; the old ones stay in force, as do the old rules if the new ones have errors", allFaults(err)
	case errors.Is(err, errNoFile), errors.Is(err, errStdin), errors.Is(err, errPushed):
		return &answer.Problem{Status: http.StatusConflict, Detail: err.Error()}
	case len(faults) == 0:
		p.Detail = err.Error() + "; the old rules stay in force"
	}
	return p
}

// allFaults returns every fault in err, and every error that holds none, one line each.
func allFaults(err error) (lines []string) {
	if of, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range of.Unwrap() {
			lines = append(lines, allFaults(part)...)
		}
		return lines
	}
	if lines = summaries(err); lines == nil {
		lines = []string{err.Error()}
	}
	return lines
}

// summaries returns the faults in err, one line each.
func summaries(err error) (lines []string) {
	for _, f := range fault.Of(err) {
		lines = append(lines, f.Summary())
	}
	return lines
}
