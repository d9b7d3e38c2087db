package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/internal/limittext"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	// frameTarget is how large the payload of a frame becomes before the next frame
	// begins. A frame exceeds it by one key or blob at most, and its spaces.
	frameTarget = 128 << 10

	// leastGrowth is how much a file grows at least before a compaction begins.
	leastGrowth = 4 << 20

	// maxDropped is the longest time that what was in a blob which was dropped or replaced stays in a
	// file before a compaction begins, because blobs can have personal data.
	maxDropped = 24 * time.Hour

	// A flush writes compactionShare bytes of the compaction for each byte of changes, and
	// at least minCompaction, or maxCompaction if there is a hurry.
	compactionShare = 4
	minCompaction   = 1 << 20
	maxCompaction   = 32 << 20

	// manyFiles is how many files may wait for a compaction before a single flush completes it.
	// Otherwise processes that end soon after their start would each leave a file behind.
	manyFiles = 4
)

// writer appends to the files. It belongs to the goroutine of its store.
type writer struct {
	store  *Store
	disk   disk
	header format.Header
	boot   uint64
	stats  *stats
	pace   pace

	file   file   // nil: none is open
	name   string // of file
	seq    uint64 // of the last frame
	size   int64  // of file, without what a failed write left behind
	copied int64  // the size of file when its header was last copied into a frame
	synced bool   // all of file is synced
	saved  bool   // some of file was synced

	// broken is set when file cannot be continued. Then a new file begins, with a
	// compaction.
	broken bool
	unsure bool // a sync of file has failed

	// lacking is set when the files lack changes that memory does not track any more. Then a
	// single flush completes the compaction, because a flush that succeeds states that nothing
	// is missing.
	lacking bool

	postponed time.Time // a compaction that is due waits until then

	buf     []byte // the frames that are being made, each with space for its header
	names   []byte // of keys of the section that is being made
	starts  []int  // where in buf they begin
	base    int64  // of these frames
	pending bool   // buf is sealed and not written yet

	changes journal.Reader
	midway  bool // a failure has interrupted a pass of changes
	spaces  map[*store.Space]*known
	blobs   map[string]*blob
	dropped time.Time // when the first blob that files still have was dropped or replaced, or earlier; zero: none was

	walk    journal.Reader // of the compaction; nil: none
	hurry   bool           // the compaction writes maxCompaction in each flush, or all keys
	live    int64          // about what all keys and blobs take in a file
	walked  int64          // what the compaction has written
	grown   int64          // what was written since the last compaction ended
	changed int64          // changes that were written since this compaction began
	old     []*segment     // files that are not needed after the compaction
}

// known is a space as it was last written.
type known struct {
	id    format.SpaceID
	limit *window.Compiled
	text  []byte
	seq   uint64 // of the frame; 0: not in this file
}

func newWriter(s *Store, h format.Header) *writer {
	return &writer{
		store: s, disk: s.disk, header: h, boot: s.startOf(), stats: newStats(),
		changes: s.memory.Journal().Changes(), spaces: make(map[*store.Space]*known), blobs: make(map[string]*blob),
	}
}

// flush writes what has changed, and a part of the compaction. ended is set for the last
// flush.
func (w *writer) flush(ended bool) error {
	if w.store.memory.Journal().Overflowed() {
		w.abandon()
	}
	if err := w.intact(); err != nil {
		w.abandon()
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	if w.pending {
		if err := w.write(); err != nil {
			return err
		}
	}
	before := w.grown
	if err := w.writeChanges(); err != nil {
		return err
	}
	if err := w.writeBlobs(); err != nil {
		return err
	}
	w.changed += w.grown - before
	whole, err := w.writeCompaction(compactionShare*(w.grown-before)+minCompaction, ended)
	if err != nil {
		return err
	}
	flags := uint32(0)
	if whole {
		flags |= format.Whole
	}
	if ended {
		flags |= format.End
	}
	if len(w.buf) > format.FrameSize || flags != 0 {
		if err := w.seal(flags); err != nil {
			return err
		}
	}
	if w.store.sync != OS || whole || ended {
		if err := w.sync(); err != nil {
			return err
		}
	}
	if whole {
		w.endCompaction()
	}
	return nil
}

// abandon makes the next flush write all keys to a new file, because file lacks some changes.
func (w *writer) abandon() { w.broken, w.lacking = true, true }

// intact returns an error if another program has removed or changed the open file, or replaced the
// directory: the next process would not find what is written to the file.
func (w *writer) intact() error {
	if w.file == nil || w.broken {
		return nil
	}
	size, err := w.disk.length(w.name)
	switch {
	case errors.Is(err, errReplaced):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: removed by another program", w.name)
	case err == nil && size != w.size: // other errors do not concern the file
		return fmt.Errorf("%s: changed by another program: %d bytes instead of %d", w.name, size, w.size)
	}
	return nil
}

// begin makes sure that there is a file to append to, and begins a compaction when one is
// due.
func (w *writer) begin() error {
	now, most := time.Now(), max(w.live, leastGrowth)
	due := w.grown >= most || !w.dropped.IsZero() && now.Sub(w.dropped) >= maxDropped
	due = due && w.walk == nil && !w.pending
	needed := w.file == nil || w.broken || w.secrets() != w.store.memory.Journal().AllSecrets() || due && w.grown >= most+most/2
	if !needed && (!due || now.Before(w.postponed)) {
		return nil
	}
	err := w.beginFile()
	if err != nil && !needed { // the open file may have space left, and may grow by half as much again
		w.postponed = time.Now().Add(10 * retry)
		return nil
	}
	return err
}

// secrets returns the secrets of receipts in the file.
func (w *writer) secrets() seal.Secrets {
	return seal.Secrets{List: w.header.Receipts, Until: window.Instant(w.header.Until)}
}

// beginFile begins a file with a compaction.
func (w *writer) beginFile() error {
	header, secrets := w.header, w.store.memory.Journal().AllSecrets()
	header.File++
	header.Receipts, header.Until = secrets.List, int64(secrets.Until)
	f, err := w.disk.create(nameOf(header.File))
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			w.header = header
		}
		return fmt.Errorf("begin a file: %w", err)
	}
	text := format.AppendHeader(nil, &header)
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = w.disk.sync()
	}
	if err != nil {
		// The next attempt uses this name again, or the next one if it still exists.
		w.header = header
		return errors.Join(fmt.Errorf("begin a file: %w", err), f.Close(), w.disk.remove(nameOf(header.File)))
	}
	w.lacking = w.lacking || w.pending // reset drops what was not written yet
	lost := w.broken || w.pending      // some of what was written to the old file
	w.retire()
	w.header, w.file, w.name = header, f, nameOf(header.File)
	w.seq, w.size, w.synced, w.saved, w.broken, w.unsure = 0, int64(len(text)), true, false, false, false
	w.copied = w.size
	w.stats.fileMade(w.name, w.size)
	w.reset()
	w.beginCompaction(lost)
	return nil
}

// retire closes the open file: the compaction that follows makes it superfluous.
func (w *writer) retire() {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // what is in it is written again
	if w.unsure && !w.saved && w.walk != nil && len(w.old) > 0 {
		// It has nothing that was promised to be synced. Failing files must not accumulate.
		if w.disk.remove(w.name) == nil {
			w.stats.fileGone(w.name)
			return
		}
	}
	w.old = append(w.old, &segment{name: w.name, valid: true, number: w.header.File})
}

// reset begins an empty frame. What was in buf is not written to the file.
func (w *writer) reset() {
	w.buf, w.starts = w.buf[:0], w.starts[:0]
	w.base, w.pending = int64(w.store.memory.Journal().Times().Steady), false
	w.next()
}

// next begins the next frame in buf.
func (w *writer) next() {
	w.starts = append(w.starts, len(w.buf))
	w.buf = append(w.buf, make([]byte, format.FrameSize)...)
}

// payload returns the size of the payload of the last frame in buf.
func (w *writer) payload() int { return len(w.buf) - w.starts[len(w.starts)-1] - format.FrameSize }

// written returns how much was written to the file, with the frames that are being
// made.
func (w *writer) written() int64 { return w.size + int64(len(w.buf)) }

// writeChanges writes the keys that had changed when it was called. It makes a whole pass, also
// after it has ended one that was interrupted: that does not visit again what it had visited before.
func (w *writer) writeChanges() error {
	from := w.written()
	defer func() { w.grown += w.written() - from }()
	for {
		more, err := w.section(w.changes.Next)
		switch {
		case err != nil:
			w.midway = true
			return err
		case !more && !w.midway:
			return nil
		case !more:
			w.midway = false
		}
		w.pace.rest()
	}
}

// section adds the keys that next visits to the frame, and starts another frame when it is
// large. It writes large frames, and returns what next reports.
func (w *writer) section(next func(visit func(journal.Part, uint64, []uint64)) bool) (more bool, err error) {
	var part journal.Part
	at := 0
	w.buf, at = format.BeginKeys(w.buf)
	more = next(func(p journal.Part, key uint64, state []uint64) {
		if p.Names {
			w.names = format.AppendName(w.names, key, state)
			return
		}
		if w.payload()+len(w.names) >= frameTarget && part.Space != nil {
			w.endKeys(at, part)
			w.next()
			w.buf, at = format.BeginKeys(w.buf)
		}
		w.buf = format.AppendKey(w.buf, w.base, key, state)
		w.stats.keys.Add(1)
		part = p
	})
	w.endKeys(at, part)
	if len(w.buf) < frameTarget {
		return more, nil
	}
	return more, w.seal(0)
}

// endKeys ends the section of keys of p that began at at. Each frame has the spaces of
// its keys, so a damaged frame costs no keys in others.
func (w *writer) endKeys(at int, p journal.Part) {
	if p.Space == nil { // no keys
		w.buf = format.EndKeys(w.buf, at, 0)
		return
	}
	k := w.space(p)
	w.buf = format.EndKeys(w.buf, at, k.id)
	if len(w.names) > 0 {
		w.buf = format.AppendNames(w.buf, k.id, w.names)
		w.names = w.names[:0]
	}
	if seq := w.seq + uint64(len(w.starts)); k.seq != seq {
		k.seq = seq
		w.buf = format.AppendSpace(w.buf, &format.Space{
			Namespace: p.Space.Namespace(), ID: p.Space.ID(), Name: p.Space.Name(), MaxKeys: p.Space.MaxKeys(), Limit: k.text,
		})
	}
}

// space returns what is known about the space of p.
func (w *writer) space(p journal.Part) *known {
	k := w.spaces[p.Space]
	if k == nil {
		k = &known{id: format.IDOf(p.Space.Namespace(), p.Space.ID())}
		w.spaces[p.Space] = k
	}
	if k.limit != p.Limit {
		// An error is impossible: a Limit has nothing that JSON cannot express.
		text, err := limittext.Append(nil, *p.Limit.Limit)
		if err != nil {
			panic("datadir: " + err.Error())
		}
		k.limit, k.text, k.seq = p.Limit, text, 0
	}
	return k
}

// seal ends the frames that are being made, of which the last one gets flags, and writes
// them. It copies the header into one of them each time the file has doubled in size, so that the
// file can be read without its beginning.
func (w *writer) seal(flags uint32) error {
	if w.written() >= 2*w.copied {
		w.buf = format.AppendHeaderCopy(w.buf, &w.header)
		w.copied = w.written()
	}
	t := w.store.memory.Journal().Times()
	fr := format.Frame{
		File: w.header.File, Seq: w.seq,
		Steady: int64(t.Steady), Wall: int64(t.Wall), SteadyFloor: int64(t.SteadyFloor), WallFloor: int64(t.WallFloor), Base: w.base,
	}
	fr.Uptime, fr.Boot = w.store.uptime(), w.boot
	for i, start := range w.starts {
		end := len(w.buf)
		if i+1 < len(w.starts) {
			end = w.starts[i+1]
		} else {
			fr.Flags = flags
		}
		fr.Seq++
		format.Seal(w.buf[start:end], &fr)
	}
	w.pending = true
	return w.write()
}

// write writes the frames that are sealed. After an error they stay pending, and the file
// ends where it did before.
func (w *writer) write() error {
	_, err := w.file.Write(w.buf)
	if err != nil {
		if cut := w.file.Truncate(w.size); cut != nil {
			w.abandon()
		}
		return fmt.Errorf("write: %w", err)
	}
	w.seq += uint64(len(w.starts))
	w.size += int64(len(w.buf))
	w.stats.wrote(w.name, w.size, len(w.buf))
	w.synced = false
	w.reset()
	return nil
}

// sync syncs the file. After an error the content of the file is unknown, even if a later
// sync succeeds, so nothing is appended to it any more.
func (w *writer) sync() error {
	if w.synced {
		return nil
	}
	if err := w.file.Sync(); err != nil {
		w.abandon()
		w.unsure = true
		return fmt.Errorf("sync: %w", err)
	}
	w.synced, w.saved = true, true
	return nil
}

// close closes the file.
func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}

// retry is how long the writer waits after a failure, at least.
const retry = time.Second
