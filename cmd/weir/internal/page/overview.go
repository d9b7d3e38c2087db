package page

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
)

// Service says how the service is. Its methods are called at most once a second for all readers
// together.
type Service interface {
	// Store returns the state of the store.
	Store() Store

	// Tally returns the numbers of keys in memory, by namespace and rule.
	Tally() []metrics.RuleStats
}

// Store is the state of the store, and of the instances that share it.
type Store struct {
	// Location is where counts are: memory, or the URL of a shared store without its password.
	Location string `json:"location"`
	Shared   bool   `json:"shared"`

	// Loading reports whether counts are still being loaded from the data directory, and Failing whether the
	// last write to it failed. Lag is the age of what was written last, in seconds.
	Loading bool    `json:"loading,omitempty"`
	Failing bool    `json:"failing,omitempty"`
	Lag     float64 `json:"lag,omitempty"`

	// Bytes is the memory of all counts in memory, MaxBytes its limit or 0, and Full how many new keys were refused.
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes,omitempty"`
	Full     int64 `json:"full,omitempty"`

	// Nodes are the servers of a shared store, Instances how many instances share it or 0 if that is not known, and
	// Outages what went wrong, the newest first.
	Nodes     []Node   `json:"nodes,omitempty"`
	Instances int      `json:"instances,omitempty"`
	Outages   []Outage `json:"outages,omitempty"`
}

// Node is a server of a shared store.
type Node struct {
	Addr        string `json:"addr"`
	Unavailable bool   `json:"unavailable,omitempty"`
	Missed      int64  `json:"missed"` // calls without an answer
}

// Outage is a time in which a server did not answer.
type Outage struct {
	At      time.Time `json:"at"`
	Addr    string    `json:"addr"`
	Reason  string    `json:"reason,omitempty"`
	Seconds float64   `json:"seconds,omitempty"` // 0: it lasts
}

// overview answers the calls of the overview.
type overview struct {
	page    *Page
	history *History
	service Service
}

const (
	// maxSeries is how many rules an answer has numbers over time of: those that are used most.
	maxSeries = 2000

	// maxSpaces is how many namespaces an answer lists: those that are used most.
	maxSpaces = 200

	// listed is how many keys an answer lists, and asked of how many rules it asks for them.
	listed, asked = 10, 40
)

// AddOverview adds the calls of the overview to p.
func AddOverview(p *Page, h *History, s Service) {
	o := &overview{page: p, history: h, service: s}
	p.Handle(http.MethodGet, prefix+"overview", access.Read, o.get)
	p.Handle(http.MethodGet, streamPath, access.Read, o.stream)
}

// overviewJSON is all that the overview shows.
type overviewJSON struct {
	Hash    string    `json:"hash"`
	File    string    `json:"file"`
	Loaded  time.Time `json:"loaded"`
	Now     int64     `json:"now"`
	Since   int64     `json:"since"`
	Seconds int64     `json:"seconds"`
	Step    int64     `json:"step"`
	Total   *row      `json:"total"`
	Rules   []*row    `json:"rules"`
	State   *state    `json:"state"`
}

// row is what an answer has of one rule.
type row struct {
	Rule string `json:"rule,omitempty"`
	metrics.Counts
	Series *[4][]uint32 `json:"series,omitempty"` // of each count, from the first that is not 0 on

	cells []cell
}

// get answers with all that the overview shows, over the span in ?span=.
func (o *overview) get(c *Caller, w http.ResponseWriter, r *http.Request) error {
	text := cmp.Or(r.URL.Query().Get("span"), "1h")
	of, ok := spans[text]
	if !ok {
		return bad("span", "%.64q: want 5m, 1h or 24h", text)
	}
	n, err := c.Namespace()
	if err != nil {
		return err
	}
	set, from, now := n.Engine().Rules(), n.Source(), time.Now()
	o.history.freshen(now)
	total, rows := o.history.rows(c.Name, set, now.Unix(), of)
	total.draw()
	most := slices.SortedFunc(slices.Values(rows), func(a, b *row) int { return cmp.Compare(b.Matched, a.Matched) })
	for _, r := range most[:min(len(most), maxSeries)] {
		r.draw()
	}
	b, err := json.Marshal(overviewJSON{
		from.Hash, from.File, from.Loaded.UTC().Truncate(time.Second), now.Unix(), o.history.began.Unix(), of.seconds, of.step, &total, rows, o.state(c, n, now),
	})
	if err != nil {
		return err
	}
	return send(w, r, append(b, '\n'))
}

// draw sets the numbers over time.
func (r *row) draw() {
	r.Series = new([4][]uint32)
	for i := range r.Series {
		r.Series[i] = []uint32{}
		for _, c := range r.cells {
			if c[i] != 0 || len(r.Series[i]) > 0 {
				r.Series[i] = append(r.Series[i], c[i])
			}
		}
	}
}

// freshen reads the counters, unless that was just done.
func (h *History) freshen(now time.Time) {
	h.mu.Lock()
	just := now.Sub(h.read) < watchPace
	h.mu.Unlock()
	if !just {
		h.Read(now)
	}
}

// rows returns what was counted in a namespace in a span up to an instant, and for each of its rules with some.
func (h *History) rows(space string, set *rule.Set, at int64, of span) (total row, rows []*row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows = []*row{}
	if s := h.all[name{space, ""}]; s != nil {
		total.cells, total.Counts = s.cells(at, of)
	}
	for i := range set.Len() {
		s := h.all[name{space, set.Rule(i).Name}]
		if s == nil {
			continue
		}
		cells, sum := s.cells(at, of)
		if sum != (metrics.Counts{}) {
			rows = append(rows, &row{Rule: set.Rule(i).Name, Counts: sum, cells: cells})
		}
	}
	return total, rows
}

// state is what an overview has that is not over time.
type state struct {
	// Recent is about the last five minutes.
	Recent recent `json:"recent"`

	// Busiest has the keys that use each rule most, those of a rule together, because rules count different
	// things. Denied has the keys that are denied most. Both are of the last five to ten minutes.
	Busiest []keyCount `json:"busiest"`
	Denied  []keyCount `json:"denied"`
	NoKeys  bool       `json:"no_keys,omitempty"` // because the service keeps or shows none

	// Rules has the rules that hold or ban in memory, and all keys.
	Rules []tally `json:"rules"`

	// Store and Spaces are for callers that may see all namespaces.
	Store  *Store  `json:"store,omitempty"`
	Spaces []space `json:"namespaces,omitempty"`
	More   int     `json:"more_namespaces,omitempty"`
}

type recent struct {
	Seconds   int64  `json:"seconds"`
	Takes     int64  `json:"takes"`
	Denied    int64  `json:"denied"`
	Shadow    int64  `json:"shadow"` // what rules in shadow mode would have denied
	Unmatched int64  `json:"unmatched"`
	Degraded  int64  `json:"degraded"`
	Rule      string `json:"rule,omitempty"` // that denied more than half of what rules denied
	Key       string `json:"key,omitempty"`  // that was denied more than half of what that rule denied
}

type keyCount struct {
	Rule     string `json:"rule"`
	Key      string `json:"key"`
	Count    int64  `json:"count"`
	Override bool   `json:"override,omitempty"`
}

type tally struct {
	Rule   string `json:"rule"`
	Keys   int64  `json:"keys"`
	Holds  int64  `json:"holds"`  // -1: the rule has none, or they are in a shared store
	Banned int64  `json:"banned"` // likewise
}

type space struct {
	Name   string `json:"name"`
	Rules  int    `json:"rules"`
	Broken bool   `json:"broken,omitempty"` // its file has errors, and no rules are in force
	Takes  int64  `json:"takes"`            // in the last five minutes
	Denied int64  `json:"denied"`
}

// state returns the state for a caller.
func (o *overview) state(c *Caller, n *namespace.Namespace, now time.Time) *state {
	set := n.Engine().Rules()
	total, rows := o.history.rows(c.Name, set, now.Unix(), spans["5m"])
	s := &state{Busiest: []keyCount{}, Denied: []keyCount{}, Rules: []tally{}}
	s.Recent = recent{
		Seconds: min(spans["5m"].seconds, int64(now.Sub(o.history.began).Seconds())+1),
		Takes:   total.Matched, Denied: total.Denied, Unmatched: total.Shadow, Degraded: total.Near,
	}
	sum, most := int64(0), &row{}
	for _, r := range rows {
		s.Recent.Shadow += r.Shadow
		if sum += r.Denied; r.Denied > most.Denied {
			most = r
		}
	}
	tops := n.Tops()
	s.NoKeys = tops == nil
	if 2*most.Denied > sum {
		s.Recent.Rule = most.Rule
		t := tops.Top(most.Rule, 1).Denied
		if i, ok := set.Find(most.Rule); ok && len(set.Rule(i).Per) > 0 && len(t.Entries) > 0 && 2*t.Entries[0].Count > t.Total {
			s.Recent.Key = t.Entries[0].Key
		}
	}
	if tops != nil {
		s.Busiest = ofEach(keysOf(set, rows, func(r *row) int64 { return r.Matched }, func(name string) []top.Entry { return tops.Top(name, listed).Used.Entries }))
		s.Denied = largest(keysOf(set, rows, func(r *row) int64 { return r.Denied + r.Shadow }, func(name string) []top.Entry { return tops.Top(name, listed).Denied.Entries }))
	}
	for _, t := range o.service.Tally() {
		if t.Namespace == c.Name && (t.Keys > 0 || t.Holds >= 0 || t.Banned >= 0) {
			s.Rules = append(s.Rules, tally{t.Rule, t.Keys, t.Holds, t.Banned})
		}
	}
	if c.Whole() {
		store := o.service.Store()
		s.Store = &store
		s.Spaces, s.More = o.spaces(now)
	}
	return s
}

// keysOf returns the keys of each of the rules that have the most by weight, those with the largest counts first.
// Rules that count for all together have no keys.
func keysOf(set *rule.Set, rows []*row, weight func(*row) int64, of func(rule string) []top.Entry) [][]keyCount {
	var lists [][]keyCount
	heavy := slices.SortedFunc(slices.Values(rows), func(a, b *row) int { return cmp.Compare(weight(b), weight(a)) })
	for _, r := range heavy[:min(len(heavy), asked)] {
		if i, ok := set.Find(r.Rule); weight(r) == 0 || !ok || len(set.Rule(i).Per) == 0 {
			continue
		}
		var list []keyCount
		for _, e := range of(r.Rule) {
			list = append(list, keyCount{r.Rule, e.Key, e.Count, e.Override})
		}
		lists = append(lists, list)
	}
	return lists
}

// largest returns the keys in lists with the largest counts.
func largest(lists [][]keyCount) []keyCount {
	all := append([]keyCount{}, slices.Concat(lists...)...)
	slices.SortStableFunc(all, func(a, b keyCount) int { return cmp.Compare(b.Count, a.Count) })
	return all[:min(len(all), listed)]
}

// ofEach returns the first keys of each list, about as many of one as of another.
func ofEach(lists [][]keyCount) []keyCount {
	taken, left := make([]int, len(lists)), listed
	for more := true; more && left > 0; {
		more = false
		for i, list := range lists {
			if left > 0 && taken[i] < len(list) {
				taken[i]++
				left--
				more = true
			}
		}
	}
	all := []keyCount{}
	for i, n := range taken {
		all = append(all, lists[i][:n]...)
	}
	return all
}

// spaces returns the namespaces that are used most, and how many more there are. It returns none if there is only one.
func (o *overview) spaces(now time.Time) (list []space, more int) {
	all := o.page.c.Namespaces.All()
	if len(all) < 2 {
		return nil, 0
	}
	o.history.mu.Lock()
	for _, n := range all {
		one := space{Name: n.Name(), Broken: n.Engine() == nil}
		if e := n.Engine(); e != nil {
			one.Rules = e.Rules().Len()
		}
		if s := o.history.all[name{n.Name(), ""}]; s != nil {
			_, sum := s.cells(now.Unix(), spans["5m"])
			one.Takes, one.Denied = sum.Matched, sum.Denied
		}
		list = append(list, one)
	}
	o.history.mu.Unlock()
	slices.SortStableFunc(list, func(a, b space) int {
		switch {
		case a.Broken == b.Broken:
			return cmp.Compare(b.Takes, a.Takes)
		case a.Broken:
			return -1
		}
		return 1
	})
	return list[:min(len(list), maxSpaces)], max(0, len(list)-maxSpaces)
}

// send writes an answer in JSON, compressed if it is large and the caller reads that.
func send(w http.ResponseWriter, r *http.Request, b []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	if len(b) < 4<<10 || !acceptsGzip(r) {
		_, _ = w.Write(b) // an error means that the reader is gone
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	to, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, _ = to.Write(b)
	_ = to.Close()
	return nil
}
