package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/record"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// namespaces serves the namespaces of a location, and reloads their rules. A fault in the rules of one does
// not affect the others.
type namespaces struct {
	parts
	place place
	set   *namespace.Set // those in service

	mu  sync.Mutex           // held during a reload
	all map[string]*reloader // guarded by mu
	bad string               // faults of names that were logged last; guarded by mu

	nodesOnce, leasesOnce sync.Once // the warnings about --nodes
}

// parts has what the namespaces share.
type parts struct {
	cfg         config.Config
	backends    *backends
	numbers     *metrics.Metrics
	tops        *top.Collector
	events      *events.Hub
	episodes    *episodes
	credentials *credentials
	log         *slog.Logger

	kept      *namespace.Kept
	telemetry *telemetry.Telemetry // or nil
	keys      top.KeyText          // in logs
	recorder  *record.Recorder     // or nil
}

// newNamespaces serves what was read in p.
func newNamespaces(parts parts, p place, first []attempt, bad fault.List) (*namespaces, error) {
	s := &namespaces{parts: parts, place: p, set: namespace.NewSet(), all: map[string]*reloader{}}
	s.logNames(bad)
	for _, a := range first {
		r := s.reloader(a.name, a.at)
		s.all[a.name] = r
		if errors.Is(a.err, errNothingSent) {
			continue
		}
		if err := r.swap(a.loaded, a.err, request{text: atStart}); err != nil && a.err == nil {
			s.publish()
			s.close()
			return nil, err
		}
	}
	s.publish()
	s.numbers.WatchNamespaces(func() int { return len(s.set.All()) })
	return s, nil
}

// reloader returns the reloader of a new namespace.
func (s *namespaces) reloader(name string, at rulesAt) *reloader {
	log := s.log
	if s.place.dir != "" {
		log = log.With("namespace", name)
	}
	r := &reloader{audit: s.kept.Audit, rules: at, numbers: s.numbers.Namespace(name), log: log, space: namespace.New(name, nil, 0, nil), publish: s.publish}
	r.loaded = func(rules *rule.Set) {
		s.warnNodes(rules)
		s.backends.holds(rules)
		if n := s.kept.Overrides.Idle(name, rules); n > 0 {
			log.Warn("overrides have no effect under these rules: weir override list shows them as idle", "overrides", n)
		}
	}
	r.changedTo = func(before, hash string) { s.events.RulesChanged(name, before, hash) }
	r.open = func(rules *rule.Set) (*namespace.Namespace, error) {
		tops := s.tops.ForNamespace(name)
		options := append(s.backends.options(),
			weir.WithNamespace(counted(name)), weir.WithObserver(s.observer(r, name, tops)))
		engine, err := weir.NewEngine(rules, options...)
		if err != nil {
			tops.Drop()
			return nil, err
		}
		tops.Follow(engine.Rules)
		s.kept.Overrides.Follow(name, engine.Override)
		return namespace.New(name, engine, int64(s.cfg.Resources.Answer), tops).WithKept(s.kept), nil
	}
	return r
}

// warnNodes warns, once, if rules admit requests from this instance's memory during
// an outage and the number of instances is not known.
func (s *namespaces) warnNodes(rules *rule.Set) {
	if s.backends.shared == nil || s.backends.here != nil || s.cfg.Nodes != 0 {
		return
	}
	for i := range rules.Len() {
		r := rules.Rule(i)
		if r.Lease != 0 {
			s.leasesOnce.Do(func() {
				s.log.Warn("--nodes is not set: instances that lease cannot tell their part of a quota, and the first one may lease all of it; "+
					"set the number of instances, or auto", "rule", r.Name)
			})
		}
		if r.Kind() == rule.KindLimit && r.Mode == rule.Enforce && r.OnOutage == rule.OutageLocal {
			s.nodesOnce.Do(func() {
				s.log.Warn("--nodes is not set: while the store is unavailable, each instance admits the whole quota again; "+
					"set the number of instances, or auto", "rule", r.Name)
			})
		}
	}
}

// observer returns the observer of the engine of a namespace.
func (s *namespaces) observer(r *reloader, name string, tops *top.Collector) weir.Observer {
	o := &observer{Namespace: r.numbers, name: name, tops: tops, events: s.events.Watch(name), episodes: s.episodes, keys: s.keys, requests: s.recorder.Of(name)}
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		o.denials = r.log
	}
	if s.telemetry.Traces() {
		o.traces = s.telemetry
	}
	return o
}

// counted returns the namespace under which a store counts for the namespace called
// name. That of the default one is empty, as it is for engines without a namespace.
func counted(name string) string {
	if name == namespace.Default {
		return ""
	}
	return name
}

// publish makes the set of the namespaces in service that of s.all.
func (s *namespaces) publish() {
	var all []*namespace.Namespace
	for _, r := range s.all {
		all = append(all, r.space)
	}
	s.set.Replace(all)
}

// reload reads the rules, the tokens and the certificates again on request. asked
// names the source of the request in the log. The error joins that of the access and that
// of the rules.
func (s *namespaces) reload(asked request) error {
	access := s.credentials.reload(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.place.file.pushed():
		return cmp.Or(access, errPushed)
	case s.place.file.stdin != nil:
		return cmp.Or(access, errStdin)
	case s.place.path() == "":
		return cmp.Or(access, errNoFile)
	}
	return errors.Join(access, s.scan(asked, true))
}

// changed implements watched. It reads files again that differ from what the last
// attempt has read, whether that succeeded or not.
func (s *namespaces) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.scan(request{text: "file"}, false) // the errors are logged, and have no other reader
}

// receive puts the rules that an xDS server has sent in force.
func (s *namespaces) receive(sent []envoyfile.Source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.place.file.envoy
	e.sent, e.received = sent, true
	return s.scan(request{text: "xDS"}, true)
}

// scan reads the rules of all namespaces, or only of those whose files have changed.
// It needs mu.
func (s *namespaces) scan(asked request, all bool) error {
	found, bad, err := s.place.list()
	if err != nil {
		for _, r := range s.all {
			r.numbers.Refused()
		}
		s.log.Error("rules refused; the old rules stay in force", "asked", asked.text, "error", err)
		return err
	}
	s.logNames(bad)
	var errs []error
	if len(bad) > 0 {
		errs = append(errs, bad)
	}
	here := map[string]bool{}
	slow := false
	for _, a := range found {
		here[a.name] = true
		r := s.all[a.name]
		isNew := r == nil
		if isNew {
			r = s.reloader(a.name, a.at)
			s.all[a.name] = r
		}
		if slow || !isNew && !all && r.rules.hash(r.lists) == r.tried {
			continue
		}
		l, err := r.rules.read()
		if !isNew && !all && l.hash == r.tried {
			continue
		}
		if err := r.swap(l, err, asked); err != nil {
			errs = append(errs, err)
			slow = errors.Is(err, files.ErrSlow) // the next file would take as long
		}
	}
	gone := maps.Clone(s.all)
	maps.DeleteFunc(gone, func(name string, _ *reloader) bool { return here[name] })
	maps.DeleteFunc(s.all, func(name string, _ *reloader) bool { return !here[name] })
	s.publish() // before old engines are closed, so that no call uses them
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		s.retire(gone[name], asked)
	}
	if len(errs) == 0 {
		return nil
	}
	return joined(errs)
}

// logNames logs faults of names, unless it has logged them before.
func (s *namespaces) logNames(bad fault.List) {
	text := ""
	if err := bad.Err(); err != nil {
		text = err.Error()
	}
	if text != s.bad {
		s.bad = text
		for _, f := range bad {
			s.log.Error("file not served", "error", f)
		}
	}
}

// retire ends the service of a namespace whose file no longer exists, and which is not published any
// more. What it has counted stays in the store until it expires, and is still reported there.
func (s *namespaces) retire(r *reloader, asked request) {
	r.numbers.Drop()
	r.log.Info("namespace gone", "asked", asked.text)
	if !r.isOpen() {
		return
	}
	before := r.space.Source()
	r.changedTo(before.Hash, "")
	r.record(audit.RulesChanged, asked, before, map[string]any{"asked": asked.text, "rules": 0})
	r.space.Tops().Drop()
	s.kept.Overrides.Follow(r.space.Name(), nil)
	_ = r.space.Engine().Close() // does not own its store
}

// close closes all engines, after the last request.
func (s *namespaces) close() {
	for _, n := range s.set.All() {
		_ = n.Engine().Close() // does not own its store
	}
}

// files implements watched.
func (s *namespaces) files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	if s.place.dir != "" {
		first, err := namespace.In(s.place.dir, namespace.Default)
		if err == nil {
			all = append(all, s.place.dir, first) // the directory is watched even if it is empty
		}
	}
	for _, r := range s.all {
		all = append(append(all, r.lists...), r.rules.path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// onSignal reloads for each of signals, which are SIGHUP.
func (s *namespaces) onSignal(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			if err := s.reload(request{text: "SIGHUP"}); errors.Is(err, errNoFile) || errors.Is(err, errStdin) || errors.Is(err, errPushed) {
				s.log.Warn(err.Error())
			}
		}
	}
}

// rules returns the number of rules in force, in all namespaces, and the number of
// namespaces that have none because their files have faults.
func (s *namespaces) rules() (rules, without int) {
	for _, n := range s.set.All() {
		if e := n.Engine(); e != nil {
			rules += e.Rules().Len()
		} else {
			without++
		}
	}
	return rules, without
}

// stats returns the state of the store in memory, by the rules in force.
func (s *namespaces) stats() metrics.StoreStats {
	if !s.backends.local.Loaded() {
		return metrics.StoreStats{}
	}
	memory := s.backends.local.Memory
	var all metrics.StoreStats
	all.Bytes, all.MaxBytes, all.Full = memory.Totals()
	for _, n := range s.set.All() {
		e := n.Engine()
		if e == nil {
			continue
		}
		rules := e.Rules()
		for i := range rules.Len() {
			r := rules.Rule(i)
			space := store.NewSpace(counted(n.Name()), rules.Compiled().ID(i), r.Name, r.MaxKeys)
			row := metrics.RuleStats{Namespace: n.Name(), Rule: r.Name, Holds: -1, Banned: -1}
			for _, st := range memory.Stats(space) {
				row.Keys = st.Keys
			}
			bans := r.Ban.For > 0
			if s.backends.shared == nil && (r.Holds() || bans) {
				holds, banned := memory.Tally(space)
				if r.Holds() {
					row.Holds = holds
				}
				if bans {
					row.Banned = banned
				}
			}
			all.Rules = append(all.Rules, row)
		}
	}
	return all
}
