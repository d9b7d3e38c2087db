package report

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/window"
)

// A Reporter with a [hook.Notebook] keeps each pending entry there as a note, so that
// the next process reports it. Before an entry is sent, its note is dropped, and the
// Reporter waits until that is written. So no entry is sent by two processes. What a
// process was about to send when it was killed is lost, like a report without an
// answer.

// notePrefix is how the names of notes begin.
const notePrefix = "report/"

// book is where a table keeps its entries. It is guarded by the lock of the table.
type book struct {
	notes   hook.Notebook
	prefix  string   // of the names of this Reporter's notes, which no other one has
	last    int64    // of the names
	changed []*entry // since they were last kept
	limits  map[*window.Compiled][]byte
}

func newBook(notes hook.Notebook) *book {
	if notes == nil {
		return nil
	}
	return &book{notes: notes, prefix: notePrefix + rand.Text() + "/", limits: make(map[*window.Compiled][]byte)}
}

// touch notes that e has changed, or that it is to be kept no more.
func (b *book) touch(e *entry) {
	if b == nil || e.touched {
		return
	}
	e.touched = true
	b.changed = append(b.changed, e)
}

// name returns a name for a note.
func (b *book) name() string {
	b.last++
	return b.prefix + strconv.FormatInt(b.last, 10)
}

// keptAtOnce is how many entries are kept under one lock.
const keptAtOnce = 32

// keep calls put for the entries that have changed. It is what the notebook calls
// before it writes.
func (r *Reporter) keep(put func(name string, data []byte)) {
	b := r.table.book
	r.mu.Lock()
	entries := b.changed
	b.changed = nil
	r.mu.Unlock()
	for some := range slices.Chunk(entries, keptAtOnce) {
		r.mu.Lock()
		for _, e := range some {
			b.keep(e, put)
		}
		r.mu.Unlock()
	}
}

func (b *book) keep(e *entry, put func(name string, data []byte)) {
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

// restore adds what the last process has kept to the table.
func (r *Reporter) restore() {
	notes := r.table.book.notes
	select {
	case <-r.stop:
		return
	case <-notes.Loaded():
	}
	type found struct {
		entry *entry
		name  string
	}
	var all []found
	whole := notes.Claim(notePrefix, func(name string, data []byte) { all = append(all, found{decode(data), name}) })
	r.mu.Lock()
	defer r.mu.Unlock()
	at := now()
	for _, f := range all {
		e := f.entry
		switch {
		case e == nil: // of a program that writes more than this one reads
			e = &entry{name: f.name, gone: true}
		case !whole: // it may have been sent
			e.name, e.gone = f.name, true
			r.lost.Add(e.all(at))
		default:
			e.name = f.name
			r.table.words += e.size()
			r.table.join(e, at)
			continue
		}
		r.table.book.touch(e)
	}
	r.awake()
}

// all returns how many hits of e are in the window at now, with those held.
func (e *entry) all(now window.Instant) int64 {
	n := e.amount(now)
	for _, h := range e.holds {
		n += h.n
	}
	return n
}

// dropNotes drops the notes of batch, which is about to be sent. It returns false if
// that fails; then batch must not be sent.
func (r *Reporter) dropNotes(batch []*entry) bool {
	b := r.table.book
	if b == nil {
		return true
	}
	r.mu.Lock()
	for _, e := range batch {
		e.gone = true
		b.touch(e)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return b.notes.Flush(ctx) == nil
}

// Wait returns when what is pending is kept as securely as the notebook's own
// counters, where calls wait for that.
func (r *Reporter) Wait(ctx context.Context) {
	if r != nil && r.table.book != nil && r.table.book.notes.Waits() {
		_ = r.table.book.notes.Flush(ctx) // counting goes on without the disk
	}
}
