package report

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/window"
)

// A Reporter with a [hook.SideStore] saves each pending entry there as a blob, so that the
// next process reports it. Before it sends an entry, the Reporter drops its blob and waits
// until that is written, so no two processes send the same entry. What a process was about to
// send when it was killed is lost, like a report without an answer.

// blobPrefix is the prefix of the names of blobs.
const blobPrefix = "report/"

// saver saves the entries of a table in a side store. It is guarded by the lock of the table.
type saver struct {
	side    hook.SideStore
	prefix  string   // of the names of blobs, unique to this Reporter
	last    int64    // the number of the last name
	changed []*entry // since they were last saved
	most    int      // how long changed may become before it is tidied
	limits  map[*window.Compiled][]byte
}

func newSaver(side hook.SideStore) *saver {
	if side == nil {
		return nil
	}
	return &saver{side: side, prefix: blobPrefix + rand.Text() + "/", limits: make(map[*window.Compiled][]byte)}
}

// touch marks e as changed, or as one whose blob is to be dropped.
func (b *saver) touch(e *entry) {
	if b == nil || e.touched {
		return
	}
	e.touched = true
	b.changed = append(b.changed, e)
	if len(b.changed) >= max(b.most, tidyFrom) {
		b.tidy()
	}
}

// tidy drops the entries that are gone and have no blob from changed. A side store that cannot write
// does not ask for what has changed.
func (b *saver) tidy() {
	b.changed = slices.DeleteFunc(b.changed, func(e *entry) bool {
		useless := e.gone && e.name == ""
		e.touched = !useless
		return useless
	})
	b.most = 2 * len(b.changed)
}

// name returns a name for a new blob.
func (b *saver) name() string {
	b.last++
	return b.prefix + strconv.FormatInt(b.last, 10)
}

// tidyFrom is how many changes are worth tidying.
const tidyFrom = 1000

// savedAtOnce is how many entries are saved under one lock.
const savedAtOnce = 32

// save calls put for the entries that have changed. The side store calls it before it
// writes.
func (r *Reporter) save(put func(name string, data []byte)) {
	b := r.table.saver
	r.mu.Lock()
	entries := b.changed
	b.changed, b.most = nil, 0
	r.mu.Unlock()
	for some := range slices.Chunk(entries, savedAtOnce) {
		r.mu.Lock()
		for _, e := range some {
			b.save(e, put)
		}
		r.mu.Unlock()
	}
}

func (b *saver) save(e *entry, put func(name string, data []byte)) {
	e.touched = false
	switch {
	case !e.gone:
		if e.name == "" {
			e.name = b.name()
		}
		put(e.name, b.encode(e))
	case e.name != "":
		put(e.name, nil)
		e.name = ""
	}
}

// restore adds what the last process has saved to the table.
func (r *Reporter) restore() {
	side := r.table.saver.side
	select {
	case <-r.stop:
		return
	case <-side.Loaded():
	}
	defer close(r.restored)
	type found struct {
		entry *entry
		name  string
	}
	var all []found
	from := decoder{}
	whole := side.Claim(blobPrefix, func(name string, data []byte) { all = append(all, found{from.decode(data), name}) })
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.now()
	for _, f := range all {
		e := f.entry
		switch {
		case e == nil: // of a later version of the program
			if r.lost.Add(1); whole {
				continue // that version may come back and send it
			}
			e = &entry{name: f.name, gone: true}
		case !whole: // it may have been sent
			e.name, e.gone = f.name, true
			r.lost.Add(e.all(at))
		default:
			e.name = f.name
			r.table.enter(e)
			r.table.join(e, r.table.entries, at)
			continue
		}
		r.table.saver.touch(e)
	}
	r.awake()
}

// Restored reports whether what the last process saved is there. The methods that look for what is pending wait for it, which
// is soon once local memory answers.
func (r *Reporter) Restored() bool {
	if r == nil || r.side == nil {
		return true
	}
	select {
	case <-r.restored:
		return true
	default:
		return false
	}
}

// all returns how many hits of e can still count at now, with those held.
func (e *entry) all(now window.Instant) int64 {
	e.turn(now)
	n := e.amount(now)
	for _, h := range e.holds {
		n += h.n
	}
	return n
}

// dropBlobs drops the blobs of batch, which is about to be sent. It returns the entries that certainly have none
// any more, and the others, which must not be sent. A side store that cannot write delays the reports of what
// it was given before.
func (r *Reporter) dropBlobs(batch []*entry) (send, keep []*entry) {
	b := r.table.saver
	if b == nil {
		return batch, nil
	}
	r.mu.Lock()
	for _, e := range batch {
		e.gone = true
		if b.touch(e); e.name == "" && !e.unsure {
			send = append(send, e)
		} else {
			keep = append(keep, e)
		}
	}
	r.mu.Unlock()
	if len(keep) == 0 {
		return send, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := b.side.Flush(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range keep {
		e.unsure = err != nil
	}
	if err != nil {
		return send, keep
	}
	return batch, nil
}

// Waits reports whether calls of the side store wait until they are on its disk.
func (r *Reporter) Waits() bool { return r != nil && r.side != nil && r.side.Waits() }

// Wait returns when what is pending, and what the side store has counted, is on its disk, if its calls wait for that.
func (r *Reporter) Wait(ctx context.Context) {
	if r.Waits() {
		_ = r.side.Flush(ctx) // counting continues without the disk
	}
}
