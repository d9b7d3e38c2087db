package page

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// Counter reads what was counted since the start; see [metrics.Metrics.EachCount].
type Counter interface {
	EachCount(same func(namespace, rule string, matched int64) bool, f func(namespace, rule string, c metrics.Counts))
}

const (
	// fine and coarse are the lengths of cells, in seconds: fine ones are kept for an hour, coarse
	// ones for a day.
	fine, coarse = 10, 60

	// chunkCells is how many cells are kept or dropped together, and fineChunks and coarseChunks how
	// many chunks a series has: one more than the time that it covers takes.
	chunkCells               = 60
	fineChunks, coarseChunks = 3600/fine/chunkCells + 1, 86400/coarse/chunkCells + 1

	// historyBytes bounds the memory of all series.
	historyBytes = 64 << 20

	// idlePace is the time between two reads while nobody watches, and watchPace while somebody does.
	idlePace, watchPace = fine * time.Second, time.Second
)

// History has the counts of each rule over the last day. It reads counters now and then, so that
// decisions do nothing for it. When its memory is full, it drops the series of the rules that are used
// least. Make one with [NewHistory]. It is safe for concurrent use.
type History struct {
	from  Counter
	began time.Time
	most  int // bytes
	wake  chan struct{}

	mu       sync.Mutex
	all      map[name]*line // guarded by mu
	bytes    int            // of all; guarded by mu
	read     time.Time      // guarded by mu; when the counters were read last
	pruned   int64          // guarded by mu; the minute in which old cells were last dropped
	watchers map[*watcher]struct{}
}

// name is a rule of a namespace; an empty rule stands for all.
type name struct{ space, rule string }

// line has the counts of one rule.
type line struct {
	last   metrics.Counts
	read   int64   // when the counters had it last, as at in [History.Read]
	use    float64 // matches; those of the past count less and less
	fine   []*chunk
	coarse []*chunk
}

// chunk is some cells in a row.
type chunk struct {
	number int64 // of the first cell, divided by chunkCells
	cells  [chunkCells]cell
}

// cell has counts of a short time: what [metrics.Counts] has. A larger number than a cell can hold is kept
// as the largest one.
type cell [4]uint32

const (
	// lineBytes and chunkBytes are the sizes of a line and of a chunk, and seriesBytes is the memory of a series without
	// chunks, with its place in the map and its name.
	lineBytes, chunkBytes = 96, 8 + chunkCells*16
	seriesBytes           = lineBytes + (fineChunks+coarseChunks)*8 + 160
)

// watcher is somebody who sees each change.
type watcher struct {
	space string
	out   chan change
	lost  bool // a change that there was no room for; guarded by mu of the history
}

// change is what was counted between two reads.
type change struct {
	at    time.Time
	lost  bool // changes before it are missing
	total metrics.Counts
	rules map[string]metrics.Counts
}

// NewHistory returns a history of what from counts, which is empty.
func NewHistory(from Counter) *History {
	return &History{
		from: from, began: time.Now(), most: historyBytes, wake: make(chan struct{}, 1),
		all: map[name]*line{}, watchers: map[*watcher]struct{}{},
	}
}

// Run reads the counters until ctx is done.
func (h *History) Run(ctx context.Context) {
	timer := time.NewTimer(h.untilNext(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake: // somebody watches
		case now := <-timer.C:
			h.Read(now)
		}
		timer.Reset(h.untilNext(time.Now()))
	}
}

// untilNext returns how long after now the counters are read next: at the end of a cell, or of a second.
func (h *History) untilNext(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	pace := idlePace
	if len(h.watchers) > 0 {
		pace = watchPace
	}
	return now.Truncate(pace).Add(pace).Sub(now)
}

// Read adds what was counted since the last read to the cells of now, and tells those who watch.
func (h *History) Read(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := now.Add(-time.Millisecond).Unix() // a read at the end of a cell is about that cell
	changes := map[string]*change{}
	for w := range h.watchers {
		if changes[w.space] == nil {
			changes[w.space] = &change{at: now, rules: map[string]metrics.Counts{}}
		}
	}
	same := func(space, rule string, matched int64) bool {
		s := h.all[name{space, rule}]
		if s == nil || s.last.Matched != matched {
			return false
		}
		s.read = at
		return true
	}
	h.from.EachCount(same, func(space, rule string, c metrics.Counts) {
		n := name{space, rule}
		s := h.all[n]
		if s == nil {
			s = &line{fine: make([]*chunk, fineChunks), coarse: make([]*chunk, coarseChunks)}
			h.all[n] = s
			h.bytes += seriesBytes
		}
		d := since(c, s.last)
		s.last, s.read = c, at
		if d == (metrics.Counts{}) {
			return
		}
		s.use += float64(d.Matched)
		h.add(s.fine, at/fine, d)
		h.add(s.coarse, at/coarse, d)
		if to := changes[space]; to != nil && rule == "" {
			to.total = d
		} else if to != nil {
			to.rules[rule] = d
		}
	})
	h.read = now
	if minute := at / coarse; minute != h.pruned {
		h.prune(at)
		h.pruned = minute
	}
	h.evict()
	for w := range h.watchers {
		c := *changes[w.space]
		c.lost = w.lost
		select {
		case w.out <- c:
			w.lost = false
		default:
			w.lost = true
		}
	}
}

// since returns what was counted between two reads. A counter that is lower than before has begun anew.
func since(c, last metrics.Counts) metrics.Counts {
	d := func(now, before int64) int64 {
		if now < before {
			return now
		}
		return now - before
	}
	return metrics.Counts{
		Matched: d(c.Matched, last.Matched), Denied: d(c.Denied, last.Denied), Shadow: d(c.Shadow, last.Shadow), Near: d(c.Near, last.Near),
	}
}

// tuple returns the counts in the order of a cell.
func tuple(c metrics.Counts) [4]int64 { return [...]int64{c.Matched, c.Denied, c.Shadow, c.Near} }

// add adds d to a cell of chunks. It needs mu.
func (h *History) add(to []*chunk, number int64, d metrics.Counts) {
	of := number / chunkCells
	c := to[of%int64(len(to))]
	switch {
	case c == nil:
		c = &chunk{number: of}
		to[of%int64(len(to))] = c
		h.bytes += chunkBytes
	case c.number != of:
		*c = chunk{number: of}
	}
	one := &c.cells[number%chunkCells]
	for i, n := range tuple(d) {
		one[i] = uint32(min(int64(one[i])+n, math.MaxUint32))
	}
}

// prune drops chunks that are older than what is kept, and series without any that the last read has not found. It makes
// the use of the past count less. It needs mu.
func (h *History) prune(at int64) {
	for n, s := range h.all {
		s.use *= 1 - 1.0/240 // after four hours a third is left
		h.drop(s.fine, at/fine/chunkCells-fineChunks)
		h.drop(s.coarse, at/coarse/chunkCells-coarseChunks)
		if s.read != at && !slices.ContainsFunc(s.coarse, func(c *chunk) bool { return c != nil }) {
			delete(h.all, n)
			h.bytes -= seriesBytes
		}
	}
}

// drop drops the chunks up to a number. It needs mu.
func (h *History) drop(of []*chunk, upTo int64) {
	for i, c := range of {
		if c != nil && c.number <= upTo {
			of[i] = nil
			h.bytes -= chunkBytes
		}
	}
}

// evict drops the chunks of the rules that are used least, until the memory is below its limit by a
// twentieth. It needs mu.
func (h *History) evict() {
	if h.bytes <= h.most {
		return
	}
	least := make([]*line, 0, len(h.all))
	for _, s := range h.all {
		least = append(least, s)
	}
	slices.SortFunc(least, func(a, b *line) int { return cmp.Compare(a.use, b.use) })
	for _, s := range least {
		if h.bytes <= h.most/20*19 {
			return
		}
		h.drop(s.fine, math.MaxInt64)
		h.drop(s.coarse, math.MaxInt64)
	}
}

// span is a part of the past: the last cells of a length, each of which is a multiple of fine ones or coarse ones.
type span struct {
	seconds, step int64
}

// spans are what the page shows.
var spans = map[string]span{"5m": {300, 10}, "1h": {3600, 60}, "24h": {86400, 900}}

// cells returns the counts of s in each step of a span, the newest last, and their sum. The last one is not over
// yet. It needs mu of the history.
func (s *line) cells(at int64, of span) (list []cell, sum metrics.Counts) {
	from, length := s.coarse, int64(coarse)
	if of.step < coarse {
		from, length = s.fine, fine
	}
	n := of.seconds / of.step
	list = make([]cell, n)
	last := at / of.step // the number of the last step
	for _, c := range from {
		if c == nil {
			continue
		}
		for i := range c.cells {
			number := c.number*chunkCells + int64(i)
			step := number*length/of.step - (last - n + 1)
			one := &c.cells[i]
			if step < 0 || step >= n || *one == (cell{}) {
				continue
			}
			for k, v := range one {
				list[step][k] = uint32(min(uint64(list[step][k])+uint64(v), math.MaxUint32))
			}
			sum.Matched += int64(one[0])
			sum.Denied += int64(one[1])
			sum.Shadow += int64(one[2])
			sum.Near += int64(one[3])
		}
	}
	return list, sum
}

// watch makes changes of a namespace known until stop is called.
func (h *History) watch(space string) (changes <-chan change, stop func()) {
	w := &watcher{space: space, out: make(chan change, 4)}
	h.mu.Lock()
	h.watchers[w] = struct{}{}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return w.out, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}
}
