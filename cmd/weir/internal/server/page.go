package server

import (
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/store/remote"
)

// site is the page of the admin address, joined with what it shows.
type site struct {
	*page.Page
	history *page.History
	trials  *trial.Runner
}

// newSite returns the page, or nil if cfg turns it off. at is its address, and api that of the API.
func newSite(cfg config.Config, at config.Address, auth *access.Authenticator, rules *namespaces, api string) *site {
	if cfg.Page == config.PageOff {
		return nil
	}
	s := &site{history: page.NewHistory(rules.numbers), trials: trial.NewRunner(trial.Self, "", trialMemory(availableMemory("/")))}
	s.Page = page.New(page.Config{
		Auth: auth, Namespaces: rules.set, Write: cfg.PageWrite, Secure: at.TLS(), Version: Version(), API: api,
	})
	page.AddOverview(s.Page, s.history, &pageService{rules: rules})
	page.AddDenials(s.Page)
	(&page.Rules{
		Sources: rules, Trials: s.trials, Recorder: rules.recorder, Tokens: auth != nil && auth.Keys != nil,
		HideKeys: top.KeyForm(cfg.LogKeys) == top.KeyNone,
	}).AddTo(s.Page)
	return s
}

// trialMemory returns how many bytes of memory a trial may take: half of those available for all that run at the same
// time, but enough for a small log, and at most [trial.MaxMemory]. If a container had no memory left, the service could be
// ended with the trial. 0 available bytes mean that the number is not known.
func trialMemory(available int64) int64 {
	if available == 0 {
		return trial.MaxMemory
	}
	return min(max(available/2/trial.MostRunning, 64<<20), trial.MaxMemory)
}

// close ends what s has begun.
func (s *site) close() {
	if s != nil {
		s.trials.Close()
	}
}

// page returns the page of s, which may be nil.
func (s *site) page() *page.Page {
	if s == nil {
		return nil
	}
	return s.Page
}

// pageService tells the page about the service.
type pageService struct {
	rules *namespaces

	mu    sync.Mutex
	tally []metrics.RuleStats // guarded by mu
	next  time.Time           // guarded by mu; when the keys are counted again
}

const (
	// tallyPace is how old the numbers of keys may be, and tallyShare the part of the time that counting
	// them may take: it reads all keys of rules that hold or ban.
	tallyPace  = 2 * time.Second
	tallyShare = 200
)

// Tally implements [page.Service].
func (s *pageService) Tally() []metrics.RuleStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun := time.Now(); !begun.Before(s.next) {
		s.tally = s.rules.stats().Rules
		s.next = time.Now().Add(max(tallyPace, tallyShare*time.Since(begun)))
	}
	return s.tally
}

// Store implements [page.Service].
func (s *pageService) Store() page.Store {
	c := s.rules.backends
	state := page.Store{Location: c.place, Shared: c.shared != nil, Outages: c.past.list()}
	if c.local.Loaded() {
		state.Bytes, state.MaxBytes, state.Full = c.local.Memory.Totals()
	}
	if c.local.Kept != nil {
		d := c.local.Kept.Stats()
		state.Loading, state.Failing, state.Lag = d.Loading, d.Failing, d.Lag.Seconds()
	}
	for _, n := range c.nodes() {
		node := page.Node{Addr: n.Addr, Unavailable: n.Unavailable}
		for _, missed := range n.Outages {
			node.Missed += missed
		}
		state.Nodes = append(state.Nodes, node)
	}
	if c.here != nil {
		state.Instances = c.here.number()
	} else if c.shared != nil {
		state.Instances = max(0, s.rules.cfg.Nodes)
	}
	return state
}

// maxPast is how many outages are remembered.
const maxPast = 20

// past remembers the last outages of the nodes of a store. It is safe for concurrent use.
type past struct {
	mu  sync.Mutex
	all []page.Outage // guarded by mu; the oldest first
}

// note remembers a change of a node.
func (p *past) note(n remote.Change, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.Err != nil {
		p.all = append(p.all, page.Outage{At: now, Addr: n.Addr, Reason: string(reasonOf(n.Err))})
		p.all = p.all[max(0, len(p.all)-maxPast):]
		return
	}
	for i := range p.all {
		if o := &p.all[i]; o.Addr == n.Addr && o.Seconds == 0 {
			o.Seconds = max(n.Lasted.Seconds(), 0.001)
		}
	}
}

// list returns the outages, the newest first.
func (p *past) list() []page.Outage {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.all)
	slices.Reverse(all)
	return all
}
