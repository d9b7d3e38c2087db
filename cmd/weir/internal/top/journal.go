package top

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/sharedlog"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	// journalSize and journalAge bound the denials of one rule in a journal.
	journalSize, journalAge = sharedlog.Size, 24 * time.Hour

	// allDenials bounds the denials of all rules in memory. If there are too many rules for
	// that, each keeps fewer, but at least leastDenials.
	allDenials, leastDenials = 100_000, 16

	// keyDenials is how many denials of one key of a rule are kept in each minute, so
	// that a key which is denied constantly does not displace others.
	keyDenials = 10

	// maxChunk and chunkTime bound the number of denials of a chunk and the time between its first and its
	// last, because a chunk stays until its newest denial is too old.
	maxChunk, chunkTime = 32, time.Hour

	// maxUnsent and allUnsent bound the denials that wait to be sent to a shared store, of one
	// rule and of all rules.
	maxUnsent, allUnsent = 1000, 20_000

	// maxStale is how many chunks that were dropped may wait to be written, at least.
	maxStale = 1000

	// savePace is the minimum time between two writes to the side store. Each of them writes
	// the last chunk of a rule again.
	savePace = time.Second
)

// journal has the denials of this process, and those that a side store has for it.
type journal struct {
	prefix  string // of the names of blobs and of logs that instances share
	logs    map[logName]*denialLog
	denials int   // in all logs
	dropped int64 // denials that were not kept, or not sent, in all
	missed  int64 // those among them whose rule is not known

	// often has the number of denials of each key in a minute since the Unix epoch, by the hash
	// of the key. When it is full, further keys are not counted.
	often  map[uint64]uint8
	minute int64
	seed   maphash.Seed

	// With a side store: the last number of a chunk, the chunks that have changed, and
	// the names of the blobs that are to be dropped.
	numbered uint64
	changed  []*chunk
	stale    int // of changed, which were dropped
	gone     []string

	unsent int // in all logs
}

// logName is a rule of a namespace.
type logName struct{ space, rule string }

// denialLog is the journal of one rule.
type denialLog struct {
	name    logName
	chunks  []*chunk // the oldest first
	denials int
	dropped int64
	unsent  []unsent // to the shared store
}

// chunk is some denials of a rule, one after another: the length of a text, and the
// text. The side store keeps it as one blob.
type chunk struct {
	of      *denialLog
	number  uint64 // 0: the side store does not have it
	text    []byte // is appended to; nil: dropped
	denials int
	oldest  window.Instant // of the first denial
	newest  window.Instant
	changed bool
}

// unsent is a denial that the shared store does not have yet.
type unsent struct {
	at   window.Instant
	text string
}

// newJournal returns a journal of denials with keys of a form. Journals of other forms are
// other journals, so that nobody sees keys who has chosen to hide them.
func newJournal(form KeyForm) journal {
	j := journal{prefix: journalName, logs: map[logName]*denialLog{}, often: map[uint64]uint8{}, seed: maphash.MakeSeed()}
	if form.Hides() {
		j.prefix += "-" + string(form)
	}
	return j
}

func (j *journal) log(name logName) *denialLog {
	l := j.logs[name]
	if l == nil {
		l = &denialLog{name: name}
		j.logs[name] = l
	}
	return l
}

// logSize returns how many denials one log may have.
func (j *journal) logSize() int {
	return min(journalSize, max(allDenials/max(len(j.logs), 1), leastDenials))
}

// addDenial adds d, whose key has a text, to the journal of its rule. d stands for as
// many decisions as the sample has.
func (s *shared) addDenial(space string, d *Denial, key []byte, sample int64) {
	j := &s.journal
	l := j.log(logName{space, d.Rule})
	j.drop(l, sample-1)
	at := window.At(d.Time)
	if j.isLoud(l.name, key, at) {
		j.drop(l, 1)
		return
	}
	size := j.logSize()
	var last *chunk
	if n := len(l.chunks); n > 0 {
		last = l.chunks[n-1]
	}
	if last == nil || last.denials >= min(maxChunk, size/8) || last.oldest < window.At(d.Time.Add(-chunkTime)) {
		last = &chunk{of: l, oldest: at}
		l.chunks = append(l.chunks, last)
	}
	s.encoded = appendDenial(s.encoded[:0], d, key)
	last.text = append(binary.AppendUvarint(last.text, uint64(len(s.encoded))), s.encoded...)
	last.denials++
	last.newest = max(last.newest, at)
	l.denials++
	j.denials++
	if s.side != nil && !last.changed {
		last.changed = true
		j.changed = append(j.changed, last)
	}
	j.trim(l, size)
	if j.denials > max(allDenials, leastDenials*len(j.logs)) { // there are more logs than before
		for _, l := range j.logs {
			j.trim(l, size)
		}
	}
	switch {
	case s.remote == nil:
	case len(l.unsent) >= maxUnsent || j.unsent >= allUnsent && !j.makeRoom(l):
		j.drop(l, 1)
	default:
		l.unsent = append(l.unsent, unsent{at, string(s.encoded)})
		j.unsent++
	}
}

// makeRoom drops the newest denial that waits of the rule with most of them, if l has fewer than its part of what
// waits, and reports whether it did.
func (j *journal) makeRoom(l *denialLog) bool {
	if len(l.unsent)*len(j.logs) >= j.unsent {
		return false
	}
	most := l
	for _, other := range j.logs {
		if len(other.unsent) > len(most.unsent) {
			most = other
		}
	}
	most.unsent = most.unsent[:len(most.unsent)-1]
	j.unsent--
	j.drop(most, 1)
	return true
}

// isLoud reports whether a key of a rule has had keyDenials in this minute already.
func (j *journal) isLoud(name logName, key []byte, at window.Instant) bool {
	if minute := int64(at) / time.Minute.Microseconds(); minute != j.minute {
		j.minute = minute
		clear(j.often)
	}
	var h maphash.Hash
	h.SetSeed(j.seed)
	for _, text := range [...]string{name.space, name.rule} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(key)
	hash := h.Sum64()
	n := j.often[hash]
	if n < keyDenials && (n > 0 || len(j.often) < allDenials) {
		j.often[hash] = n + 1
	}
	return n >= keyDenials
}

// drop counts n denials of l that the journal lacks.
func (j *journal) drop(l *denialLog, n int64) {
	l.dropped += n
	j.dropped += n
}

// trim drops the oldest denials of l until there are at most size.
func (j *journal) trim(l *denialLog, size int) {
	for l.denials > size {
		j.dropOldest(l)
	}
}

func (j *journal) dropOldest(l *denialLog) {
	c := l.chunks[0]
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	l.denials -= c.denials
	j.denials -= c.denials
	if c.number != 0 {
		j.gone = append(j.gone, j.blob(c))
	}
	c.text = nil
	if !c.changed {
		return
	}
	// A side store that cannot write does not ask for what has changed.
	if j.stale++; j.stale > maxStale && 2*j.stale > len(j.changed) {
		j.changed = slices.DeleteFunc(j.changed, func(c *chunk) bool { return c.text == nil })
		j.stale = 0
	}
}

// expire drops denials that are older than journalAge. After a clock was set back, denials
// that seem to be newer than now are as old as now.
func (j *journal) expire(now time.Time) {
	newest, oldest := window.At(now), window.At(now.Add(-journalAge))
	for name, l := range j.logs {
		for _, c := range l.chunks {
			c.newest = min(c.newest, newest)
		}
		for len(l.chunks) > 0 && l.chunks[0].newest < oldest {
			j.dropOldest(l)
		}
		if len(l.chunks) == 0 && len(l.unsent) == 0 {
			delete(j.logs, name)
		}
	}
}

// forget drops the journals of a namespace.
func (j *journal) forget(space string) {
	maps.DeleteFunc(j.logs, func(name logName, l *denialLog) bool {
		if name.space != space {
			return false
		}
		for len(l.chunks) > 0 {
			j.dropOldest(l)
		}
		j.unsent -= len(l.unsent)
		return true
	})
}

// journalName begins the names of the blobs of all journals.
const journalName = "denials"

// blob returns the name of the blob of c: the prefix, the number of the chunk, the namespace
// and the rule, with slashes between them.
func (j *journal) blob(c *chunk) string {
	return fmt.Sprintf("%s/%016x/%s/%s", j.prefix, c.number, c.of.name.space, c.of.name.rule)
}

// load reads the blobs of the last process, and follows the side store from then on. It drops
// the blobs of journals with another prefix.
func (s *shared) load() {
	s.mu.Lock()
	j := &s.journal
	s.side.Claim(journalName, func(name string, text []byte) {
		parts := strings.SplitN(name, "/", 4)
		if len(parts) < 4 || parts[0] != j.prefix {
			j.gone = append(j.gone, name)
			return
		}
		number, err := strconv.ParseUint(parts[1], 16, 64)
		if err != nil || number == 0 {
			j.gone = append(j.gone, name)
			return
		}
		l := j.log(logName{parts[2], parts[3]})
		c := &chunk{of: l, number: number, text: text}
		for _, text := range c.all() {
			at := instantOf(text)
			c.denials++
			c.oldest, c.newest = cmp.Or(c.oldest, at), max(c.newest, at)
		}
		l.chunks = append(l.chunks, c)
		l.denials += c.denials
		j.denials += c.denials
		j.numbered = max(j.numbered, number)
	})
	for _, l := range j.logs {
		slices.SortStableFunc(l.chunks, func(c, d *chunk) int {
			return cmp.Compare(c.number-1, d.number-1) // those of this process have no number yet, and come last
		})
		j.trim(l, j.logSize())
	}
	j.expire(s.now())
	s.mu.Unlock()
	s.unfollow = s.side.Follow(s.save)
}

// Abandon drops the denials that an earlier process has left in a side store, in which this one keeps none.
func Abandon(side hook.SideStore) {
	side.Follow(func(put func(name string, data []byte)) {
		select {
		case <-side.Loaded():
			side.Claim(journalName, func(name string, _ []byte) { put(name, nil) })
		default:
		}
	})
}

// save puts the chunks that have changed into the side store.
func (s *shared) save(put func(name string, data []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.ended && now.Sub(s.savedAt) < savePace {
		return
	}
	s.savedAt = now
	s.countLocked()
	j := &s.journal
	for _, c := range j.changed {
		if c.changed = false; c.text == nil {
			continue
		}
		if c.number == 0 {
			j.numbered++
			c.number = j.numbered
		}
		put(j.blob(c), c.text)
	}
	for _, name := range j.gone {
		put(name, nil)
	}
	j.changed, j.stale, j.gone = j.changed[:0], 0, nil
}

// all returns the texts of the denials in c, up to the first damage.
func (c *chunk) all() (texts [][]byte) {
	for rest := c.text; len(rest) > 0; {
		text, after, ok := store.CutKey(rest)
		if !ok {
			break
		}
		texts, rest = append(texts, text), after
	}
	return texts
}
