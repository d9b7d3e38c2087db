package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Sweep states what [Suggest] measures.
type Sweep struct {
	// Rule is the name of a limit. Its tests, its key and what it counts stay; its
	// quota and its window are replaced.
	Rule string

	// Windows are the windows to measure. Empty: the rule's own.
	Windows []window.Window

	// Quotas are the candidates, ascending, at most 64. Empty: [DefaultQuotas].
	Quotas []int64

	// Share is the largest share of keys that the suggested quota may deny, from 0
	// to 1. 0 means [DefaultShare]. If there are 50 keys or more, the quota may deny
	// one key in any case.
	Share float64
}

// DefaultShare is the default of Sweep.Share: one key in a thousand.
const DefaultShare = 0.001

// DefaultQuotas returns twenty candidates from 1 to 1000. For a rule that sums, they
// are multiples of the rule's own quota from a hundredth to ten times.
func DefaultQuotas(r *rule.Rule) []int64 {
	list := []int64{1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 400, 500, 700, 1000}
	if r.Measure != window.Sum || r.Quota == nil {
		return list
	}
	quotas := make([]int64, 0, len(list))
	for _, n := range list {
		quotas = append(quotas, max(1, r.Quota.Value/100*n))
	}
	return slices.Compact(quotas)
}

// Suggestion has the requests that a limit with each candidate would have denied. Its JSON form
// is the output of `weir suggest --json`. All numbers are those of a rules file with
// only this rule.
type Suggestion struct {
	// Lines, Bad, Skipped, BadLines, From and To are as in [Report].
	Lines    int64     `json:"lines"`
	Bad      int64     `json:"bad"`
	Skipped  int64     `json:"skipped,omitzero"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	BadLines []BadLine `json:"bad_lines"`

	// Rule is the name of the rule, and Matched the number of requests that it
	// matches.
	Rule    string `json:"rule"`
	Matched int64  `json:"matched"`

	// Keys is the number of different keys of these requests.
	Keys int64 `json:"keys"`

	// Missing is as in [Report].
	Missing []string `json:"missing,omitempty"`

	Windows []Swept `json:"windows"`
}

// Read is [Report.Read].
func (s *Suggestion) Read() (lines, bad int64, first []BadLine, skipped int64) {
	return s.Lines, s.Bad, s.BadLines, s.Skipped
}

// Swept holds the numbers of one window.
type Swept struct {
	// Window describes the window, such as "1m0s" or "day".
	Window string `json:"window"`

	// Peaks describes the highest use of each key in the window without a limit.
	Peaks Peaks `json:"peaks"`

	Candidates []Candidate `json:"candidates"`

	// Suggested is the index of the suggested candidate, or -1 if none denies few
	// enough keys. Reason states why, in a sentence or two.
	Suggested int    `json:"suggested"`
	Reason    string `json:"reason"`

	window        window.Window
	matched, keys int64
}

// Of returns the window that was measured.
func (s *Swept) Of() window.Window { return s.window }

// Peaks is a distribution of the peaks of keys. A percentile of 99 is the smallest
// number that 99 % of the keys do not exceed.
type Peaks struct {
	P50 int64 `json:"p50"`
	P90 int64 `json:"p90"`
	P99 int64 `json:"p99"`
	// P999 is the percentile of 99.9.
	P999 int64 `json:"p99_9"`
	Max  int64 `json:"max"`

	// Bounds and Keys are a histogram: Keys[i] keys have a peak of at most
	// Bounds[i] and more than Bounds[i-1].
	Bounds []int64 `json:"bounds"`
	Keys   []int64 `json:"keys"`

	// Top has the keys with the highest peaks.
	Top []Peak `json:"top"`
}

// Peak is the highest use of a key in the window, when it was reached, and the
// number of the key's requests.
type Peak struct {
	Key      string    `json:"key"`
	Peak     int64     `json:"peak"`
	At       time.Time `json:"at"`
	Requests int64     `json:"requests"`
}

// Candidate has the numbers of what a quota would have denied.
type Candidate struct {
	Quota      int64 `json:"quota"`
	Denied     int64 `json:"denied"` // requests
	KeysDenied int64 `json:"keys_denied"`

	// DeniedShare is Denied as a share of the requests that match, and KeysShare
	// KeysDenied as a share of the keys.
	DeniedShare float64 `json:"denied_share"`
	KeysShare   float64 `json:"keys_share"`
}

// Suggest measures the use of each key of a limit, and what candidates for its quota
// would have denied, in one pass over source. Its memory grows with the number of
// keys, and with the hits of a key within a window.
//
// The error is that of [Run], or a [*fault.Fault] about sweep.
func Suggest(ctx context.Context, rules *rule.Set, sweep Sweep, source Source, list ...Option) (*Suggestion, error) {
	o := apply(list)
	s, err := newSweeping(rules, sweep)
	if err != nil {
		return nil, err
	}
	f, err := newFeed(ctx, source, s.rules.Attributes(), &o)
	if err != nil {
		return nil, err
	}
	defer f.close()
	err = f.each(ctx, s.take)
	r := &Suggestion{
		Lines: f.lines, Bad: f.bad, BadLines: f.badLines, Rule: sweep.Rule, Matched: s.matched, Keys: int64(len(s.keys)),
		Missing: f.missing(), Skipped: skippedOf(f.reader),
	}
	r.From, r.To = f.span()
	for i := range s.windows {
		r.Windows = append(r.Windows, s.report(i, o.top))
	}
	return r, err
}

// sweeping is a running Suggest.
type sweeping struct {
	rules   *rule.Set // the one rule
	values  []string  // of a request
	rule    *rule.Rule
	share   float64
	quotas  []int64
	windows []*sweptWindow
	keys    map[string]*sweptKey
	matched int64
	match   []int
	key     []byte
	seed    maphash.Seed // of members
}

// sweptWindow is one window with a limit for each candidate.
type sweptWindow struct {
	of     window.Window
	usage  usageOf
	quotas []int64
	limits []*window.Compiled // by candidate

	// byLevel reports for each candidate whether its state follows from the hits
	// inside the window. The state of others, such as windows in groups, follows from all
	// hits of a run; then needsRun is set.
	byLevel  []bool
	needsRun bool

	// always reports whether candidates have a state from the first hit on: in a
	// bucket, a hit that is out of order can use more than one hit of quota. wrapped
	// reports whether the limit has a condition, holds, bans, or counts denied hits, so
	// that states depend on more than the admitted hits.
	always, wrapped bool
	countDenied     bool
	holds           uint64 // the number of takes that hold, for their ids

	denied []int64 // requests, by candidate
	keys   []int64 // with a denied request, by candidate
}

// sweptKey is the state of one key.
type sweptKey struct {
	name     string
	requests int64
	windows  []keyWindow
}

func newSweeping(rules *rule.Set, sweep Sweep) (*sweeping, error) {
	i, ok := rules.Find(sweep.Rule)
	if !ok {
		return nil, fault.Newf("rule", "no rule %q%s", sweep.Rule, fault.DidYouMean(sweep.Rule, names(rules)))
	}
	only := *rules.Rule(i)
	switch {
	case only.Kind() != rule.KindLimit:
		return nil, fault.Newf("rule", "%s is a %s: want a limit", only.Name, only.Kind())
	case only.Window.Kind == window.KindHeld && len(sweep.Windows) == 0:
		return nil, fault.Newf("rule", "%s limits what is in flight, and a log does not say when that ends: state other windows to measure", only.Name)
	}
	only.Mode, only.Then = rule.Enforce, ""
	if only.Quota.Attribute() != "" {
		only.Quota = &rule.Quota{Value: 1}
	}
	set, err := like(rules, []rule.Rule{only}, nil)
	if err != nil {
		return nil, err
	}
	s := &sweeping{
		values: make([]string, set.Compiled().Width()),
		rules:  set, rule: set.Rule(0), share: sweep.Share, quotas: sweep.Quotas, keys: map[string]*sweptKey{}, seed: maphash.MakeSeed(),
	}
	if s.share == 0 {
		s.share = DefaultShare
	}
	if len(s.quotas) == 0 {
		s.quotas = DefaultQuotas(&only)
	}
	if !slices.IsSorted(s.quotas) {
		return nil, fault.Newf("quotas", "not ascending")
	}
	if len(s.quotas) > maxCandidates {
		return nil, fault.Newf("quotas", "%d of them: want at most %d", len(s.quotas), maxCandidates)
	}
	windows := sweep.Windows
	if len(windows) == 0 {
		windows = []window.Window{only.Window}
	}
	for _, w := range windows {
		if err := s.add(w); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds a window.
func (s *sweeping) add(w window.Window) error {
	if w.Kind == window.KindHeld {
		return fault.Newf("windows", "a held window counts what is in flight: want another one")
	}
	limit := window.Limit{
		Measure: s.rule.Measure, Window: w, After: s.rule.After,
		Hold: s.rule.Hold, Release: s.rule.Release, MaxHolds: s.rule.MaxHolds, Ban: s.rule.Ban,
	}
	if s.rule.Hold == 0 {
		limit.MaxHolds = 0 // of a held window
	}
	sw := &sweptWindow{of: w, countDenied: s.rule.CountDenied, quotas: s.quotas, denied: make([]int64, len(s.quotas)), keys: make([]int64, len(s.quotas))}
	sw.wrapped = sw.countDenied || limit.After != window.After{} || limit.Hold > 0 || limit.Ban != window.Ban{}
	sw.always = sw.wrapped || w.Kind == window.KindBucket
	for _, q := range s.quotas {
		limit.Quota = q
		l, err := window.Compile(limit)
		if err != nil {
			return fmt.Errorf("a quota of %d: %w", q, err)
		}
		byLevel := !sw.wrapped && w.Kind == window.KindSliding && s.rule.Measure != window.Distinct && q <= int64(limit.WithDefaults().Window.Precision)
		sw.limits, sw.byLevel = append(sw.limits, l), append(sw.byLevel, byLevel)
		sw.needsRun = !sw.always && (sw.needsRun || !byLevel)
	}
	var err error
	if sw.usage, err = newUsage(s.rule.Measure, w); err != nil {
		return err
	}
	if sw.wrapped {
		sw.usage.gap = maxGap
	}
	s.windows = append(s.windows, sw)
	return nil
}

func names(rules *rule.Set) []string {
	all := make([]string, rules.Len())
	for i := range all {
		all[i] = rules.Rule(i).Name
	}
	return all
}

// take measures one request.
func (s *sweeping) take(_ context.Context, e *Entry) error {
	copy(s.values, e.Values)
	s.rules.Compiled().Complete(s.values)
	s.match = s.rules.Compiled().Match(s.values, s.match[:0], false)
	if len(s.match) == 0 {
		return nil
	}
	h := window.Hits{N: max(1, e.Hits)}
	switch s.rule.Measure {
	case window.Sum:
		n, err := s.rules.Compiled().Sum(0, s.values)
		if err != nil {
			return fault.Newf("attributes."+s.rule.Of, "%v", err)
		}
		h.N = n
	case window.Distinct:
		h.N = 1
		h.Member = maphash.String(s.seed, s.rules.Compiled().Member(0, s.values))
	}
	s.key = s.rules.Compiled().AppendKey(s.key[:0], 0, s.values)
	k := s.keys[string(s.key)]
	if k == nil {
		k = &sweptKey{name: strings.Clone(s.rules.Compiled().ReadableKey(0, s.values)), windows: make([]keyWindow, len(s.windows))}
		s.keys[string(s.key)] = k
	}
	if e.Verb != Record { // which no limit denies
		s.matched++
		k.requests++
	}
	for i, w := range s.windows {
		k.windows[i].do(w, e.Verb, e.Time, h)
	}
	return nil
}

// Write writes the suggestion as tables, with times in UTC, and with bars if graphs is set.
func (s *Suggestion) Write(w io.Writer, graphs bool) error {
	out := bufio.NewWriter(w)
	writeLines(out, s)
	fmt.Fprintf(out, "rule %s matched %s of %s", printable(s.Rule), count(s.Matched, "request"), count(s.Keys, "key"))
	if !s.From.IsZero() {
		fmt.Fprintf(out, ", %s to %s UTC", moment(&s.From), moment(&s.To))
	}
	fmt.Fprintln(out)
	writeMissing(out, s.Missing)
	var errs []error
	for i := range s.Windows {
		errs = append(errs, s.Windows[i].write(out, graphs))
	}
	return errors.Join(append(errs, out.Flush())...)
}

func (s *Swept) write(out io.Writer, graphs bool) error {
	p := &s.Peaks
	fmt.Fprintf(out, "\nin %s\n", s.Window)
	if s.keys == 0 {
		_, err := fmt.Fprintln(out, s.Reason)
		return err
	}
	fmt.Fprintf(out, "peaks of keys: half up to %d, 90 %% up to %d, 99 %% up to %d, 99.9 %% up to %d, all up to %d\n", p.P50, p.P90, p.P99, p.P999, p.Max)
	if graphs {
		s.writeBars(out)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "quota\tdenied\tof requests\tkeys denied\tof keys\t")
	for i, c := range s.Candidates {
		mark := ""
		if i == s.Suggested {
			mark = " suggested"
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%d\t%s\t%s\n", c.Quota, c.Denied, percent(c.Denied, s.matched), c.KeysDenied, percent(c.KeysDenied, s.keys), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for n, k := range p.Top {
		if n == 0 {
			fmt.Fprintln(table, "highest peaks")
		}
		fmt.Fprintf(table, "  %s\t%d\tat %s\t%s\n", keyText(k.Key), k.Peak, moment(&k.At), count(k.Requests, "request"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if s.Suggested >= 0 {
		fmt.Fprintf(out, "suggested: %d in %s. ", s.Candidates[s.Suggested].Quota, s.Window)
	}
	_, err := fmt.Fprintln(out, s.Reason)
	return err
}

// writeBars writes the distribution of peaks.
func (s *Swept) writeBars(out io.Writer) {
	most := int64(0)
	for _, n := range s.Peaks.Keys {
		most = max(most, n)
	}
	for i, n := range s.Peaks.Keys {
		if n > 0 {
			fmt.Fprintf(out, "  up to %6d %s %s\n", s.Peaks.Bounds[i], strings.Repeat("█", int(max(1, n*40/most))), count(n, "key"))
		}
	}
}
