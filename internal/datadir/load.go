package datadir

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/internal/limittext"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// load loads the files into memory, and makes the writer continue the last one or begin
// another.
//
// It reports false if the store was closed meanwhile. Then memory does not have all keys,
// and must not be written.
func (s *Store) load(segments []*segment) (ok bool) {
	begun, bytes := time.Now(), int64(0)
	for _, p := range segments {
		if s.stopped() {
			return false
		}
		p.scan(s.disk, nil)
		s.writer.stats.fileMade(p.name, p.size)
		bytes += p.size
	}
	needed, superfluous := split(segments)
	s.resume(segments)
	l := newLoader(s)
	for _, p := range needed {
		l.read(p)
	}
	l.end()
	if s.stopped() {
		return false
	}
	damage := s.report(needed, l)
	if !s.readOnly {
		s.writer.follow(segments, needed, superfluous)
	}
	s.writer.stats.loadEnded(l.keys(), damage, s.writer.live)
	s.loading.Store(false)
	s.memory.Journal().Refuse(nil)
	s.told(Event{Kind: Loaded, Keys: l.keys(), Bytes: bytes, Took: time.Since(begun)}) // from here on calls are decided
	close(s.loaded)
	return true
}

func (s *Store) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// split returns the files that have to be loaded, and those before them that a whole
// one has made superfluous.
func split(segments []*segment) (needed, superfluous []*segment) {
	for i := len(segments) - 1; i > 0; i-- {
		if segments[i].whole > 0 && !segments[i].damaged() {
			return segments[i:], segments[:i]
		}
	}
	return segments, nil
}

// resume sets the clocks of the memory to continue where the last frame ended.
func (s *Store) resume(segments []*segment) {
	if s.given {
		return
	}
	var last *format.Frame
	for _, p := range segments {
		if p.frames > 0 && (last == nil || p.last.Steady >= last.Steady) {
			last = &p.last
		}
	}
	if last == nil {
		return
	}
	up, boot := s.uptime(), s.startOf()
	wall := s.memory.Journal().Times().Wall
	s.memory.Journal().Resume(journal.Times{
		Steady:      resumed(window.Instant(last.Steady), last.Uptime, last.Boot, up, boot, wall),
		SteadyFloor: window.Instant(last.SteadyFloor), WallFloor: window.Instant(last.WallFloor),
	})
}

// damageOf returns what scans found in the files.
func damageOf(needed []*segment) (found []Event) {
	if len(needed) > 0 && needed[0].valid && needed[0].whole == 0 && needed[0].number > 1 {
		found = append(found, Event{Kind: Missing, File: needed[0].name})
	}
	for _, p := range needed {
		switch {
		case p.trouble != nil:
			found = append(found, Event{Kind: Damaged, File: p.name, Err: p.trouble})
		case !p.valid && p.damaged():
			found = append(found, Event{Kind: Damaged, File: p.name, Err: format.ErrHeader})
		}
		for _, h := range p.gaps {
			found = append(found, Event{Kind: Damaged, File: p.name, Offset: h.from, Bytes: h.to - h.from, Lost: h.lost})
		}
		if torn := p.torn(); torn > 0 && p.valid && p.trouble == nil {
			found = append(found, Event{Kind: Torn, File: p.name, Offset: p.size - torn, Bytes: torn})
		}
	}
	return found
}

// report reports what was found in the files, and returns how many parts are damaged.
func (s *Store) report(needed []*segment, l *loader) (damage int64) {
	for _, e := range damageOf(needed) {
		if e.Kind != Torn {
			damage++
		}
		s.told(e)
	}
	if n := l.malformed.Load(); n > 0 {
		damage += n
		for _, p := range needed {
			p.trouble = errMalformed // which is in one of them
		}
		s.told(Event{Kind: Damaged, File: needed[len(needed)-1].name, Lost: n, Err: errMalformed})
	}
	return damage
}

// follow makes w append to the last file if it is intact and has all keys, and otherwise begin
// another one with a compaction.
func (w *writer) follow(segments, needed, superfluous []*segment) {
	if len(segments) == 0 {
		w.broken = true
		return
	}
	last := segments[len(segments)-1]
	w.header.File = last.number
	w.hurry = len(needed) > 1 // incomplete compactions must not accumulate
	// A last file that has all keys and is intact is the only one that is needed. Of many
	// files that lack keys, the last one is continued, too: processes that are killed before they
	// have written all keys must not each leave a copy of most of them.
	partial := last.whole == 0
	if last.damaged() || last.frames == 0 || partial && len(segments) <= manyFiles {
		w.old, w.broken = segments, true
		return
	}
	f, err := w.disk.extend(last.name, last.good)
	if err != nil {
		w.old, w.broken = segments, true
		return
	}
	w.file, w.name, w.seq, w.size = f, last.name, last.last.Seq, last.good
	w.live, w.grown = last.whole, last.good-last.whole
	w.synced, w.saved = false, true
	if w.store.blobs.replaced { // since the first file that is needed was begun
		w.dropped = time.UnixMicro(needed[0].first)
	}
	w.stats.fileMade(w.name, w.size)
	w.reset()
	if partial { // a compaction is due, once the process has lived for a while
		w.old = segments[:len(segments)-1]
		w.live = needed[0].whole
		w.grown, w.postponed = max(w.live, leastGrowth), time.Now().Add(10*retry)
		return
	}
	w.old = superfluous
	w.dropOld()
}

// loader puts keys into memory, in several goroutines: each has the keys of some
// shards, and reads all frames in their order.
type loader struct {
	store   *Store
	workers []*worker
	tasks   sync.WaitGroup

	malformed atomic.Int64 // frames, and sections of keys whose space is not known
}

// worker puts the keys whose highest three bits are in a range into memory.
type worker struct {
	loader   *loader
	from, to uint64
	work     chan *batch
	spaces   map[format.SpaceID]format.Space // as last defined
	parts    map[format.SpaceID]journal.Writer
	put      journal.Writer
}

// batch is the payload of a frame.
type batch struct {
	payload []byte
	base    int64
	users   atomic.Int32
}

// batches is a pool of batches.
var batches = sync.Pool{New: func() any { return new(batch) }}

func newLoader(s *Store) *loader {
	l := &loader{store: s}
	n := uint64(min(8, runtime.GOMAXPROCS(0)))
	for i := range n {
		w := &worker{
			loader: l, from: i * 8 / n, to: (i + 1) * 8 / n, work: make(chan *batch, 16),
			spaces: make(map[format.SpaceID]format.Space), parts: make(map[format.SpaceID]journal.Writer),
		}
		l.workers = append(l.workers, w)
		l.tasks.Go(w.run)
	}
	return l
}

// read loads the frames of p.
func (l *loader) read(p *segment) {
	p.scan(l.store.disk, func(fr *format.Frame, payload []byte) {
		if l.store.stopped() {
			return
		}
		b, _ := batches.Get().(*batch)
		b.payload, b.base = append(b.payload[:0], payload...), fr.Base
		b.users.Store(int32(len(l.workers)))
		for _, w := range l.workers {
			w.work <- b
		}
	})
}

// end waits until all is loaded.
func (l *loader) end() {
	for _, w := range l.workers {
		close(w.work)
	}
	l.tasks.Wait()
}

// keys returns how many keys are in memory.
func (l *loader) keys() (n int64) {
	for _, s := range l.store.memory.Stats() {
		n += s.Keys
	}
	return n
}

func (w *worker) run() {
	v := format.Visitor{Space: w.space, Keys: w.keys, Key: w.key, Name: w.name}
	if w.from == 0 {
		v.Blob = w.loader.store.restoreBlob
	}
	for b := range w.work {
		if err := format.Read(b.payload, b.base, &v); err != nil && w.from == 0 {
			w.loader.malformed.Add(1)
		}
		if b.users.Add(-1) == 0 {
			batches.Put(b)
		}
	}
}

// space stores a space.
func (w *worker) space(id format.SpaceID, sp format.Space) {
	if old, ok := w.spaces[id]; !ok || !slices.Equal(old.Limit, sp.Limit) {
		w.spaces[id] = sp
		delete(w.parts, id)
	}
}

// keys makes id the space of the keys that follow.
func (w *worker) keys(id format.SpaceID) bool {
	if w.put = w.parts[id]; w.put == nil {
		if w.put = w.restore(id); w.put == nil {
			if w.from == 0 {
				w.loader.malformed.Add(1)
			}
			return false
		}
		w.parts[id] = w.put
	}
	return true
}

// restore returns a writer of keys into the space id, or nil if that is unknown.
func (w *worker) restore(id format.SpaceID) journal.Writer {
	sp, ok := w.spaces[id]
	if !ok {
		return nil
	}
	l, err := limittext.Read(sp.Limit, time.LoadLocation)
	if err != nil {
		return nil
	}
	limit, err := window.Compile(l)
	if err != nil {
		return nil
	}
	space := store.NewSpace(sp.Namespace, sp.ID, sp.Name, sp.MaxKeys)
	return w.loader.store.memory.Journal().Restore(journal.Part{Space: space, Limit: limit})
}

func (w *worker) name(key uint64, words []uint64) {
	if high := key >> 61; w.from <= high && high < w.to {
		w.put.Name(key, words)
	}
}

func (w *worker) key(key uint64, state []uint64) {
	if high := key >> 61; w.from <= high && high < w.to {
		w.put.Put(key, state)
	}
}
