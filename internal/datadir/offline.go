package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/window"
)

// Report describes the content of a directory.
type Report struct {
	// Version is the version of the layout, 0 for a directory without a file.
	Version uint32

	Files  []FileReport  // the oldest first
	Spaces []SpaceReport // in the order of their names
	Keys   int64         // of all spaces, without those that have expired
	Bytes  int64         // of all files

	// Damage are the events of the files, other than Loaded. Damaged is the number
	// of batches and parts of files that cannot be read, without a last batch that
	// is torn.
	Damage  []Event
	Damaged int64
}

// FileReport describes a file.
type FileReport struct {
	Name    string
	Bytes   int64
	Batches int64
	Whole   bool // the file has all keys, so older ones are not needed
}

// SpaceReport describes a space.
type SpaceReport struct {
	Namespace, Name string
	Keys            int64
	Limit           window.Limit
}

// listSome returns the files of a directory. One that has none may be another directory than was meant, or a disk that is not
// mounted.
func listSome(d disk) ([]*segment, error) {
	segments, err := list(d)
	if err == nil && len(segments) == 0 {
		err = errors.New("has no counters")
	}
	return segments, err
}

// Check reads a directory, and changes nothing in it. The directory may be in use, in which
// case the last batch may be incomplete. Check fails where [Open] fails, except that it needs
// no lock.
func Check(dir string) (Report, error) { return check(folder{dir: dir}) }

func check(d disk) (Report, error) {
	var r Report
	s, segments, err := look(d, func(e Event) { r.Damage = append(r.Damage, e) })
	if err != nil {
		return r, err
	}
	defer s.memory.Close()
	for _, p := range segments {
		r.Files = append(r.Files, FileReport{p.name, p.size, p.frames, p.whole > 0})
		r.Bytes += p.size
		r.Version = max(r.Version, p.header.Version)
	}
	r.Damaged = s.Stats().Damaged
	limits := map[string]window.Limit{}
	_ = s.walk(func(p journal.Part, _ uint64, _ []uint64) error {
		limits[p.Space.Namespace()+"\x00"+p.Space.ID()] = *p.Limit.Limit
		return nil
	})
	for _, sp := range s.memory.Stats() {
		if sp.Keys == 0 {
			continue
		}
		r.Keys += sp.Keys
		r.Spaces = append(r.Spaces, SpaceReport{
			sp.Space.Namespace(), sp.Space.Name(), sp.Keys, limits[sp.Space.Namespace()+"\x00"+sp.Space.ID()],
		})
	}
	slices.SortFunc(r.Spaces, func(a, b SpaceReport) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	return r, nil
}

// look loads a directory and writes nothing. The caller closes the memory.
func look(d disk, told func(Event)) (*Store, []*segment, error) {
	for try := 1; ; try++ {
		segments, err := listSome(d)
		if err != nil {
			return nil, nil, err
		}
		var found []Event
		c := defaults()
		c.disk, c.readOnly = d, true
		c.told = func(e Event) {
			if e.Kind != Loaded {
				found = append(found, e)
			}
		}
		s := newStore("", c, nil, segments)
		s.load(segments)
		gone := slices.ContainsFunc(segments, func(p *segment) bool { return errors.Is(p.trouble, fs.ErrNotExist) })
		if gone && try < removedTries { // by the process that uses the directory
			_ = s.memory.Close()
			continue
		}
		for _, e := range found {
			told(e)
		}
		return s, segments, nil
	}
}

// walk calls visit for each key in memory, until it returns an error. It needs a store
// that nobody else uses.
func (s *Store) walk(visit func(p journal.Part, key uint64, state []uint64) error) error {
	type entry struct {
		part  journal.Part
		key   uint64
		state []uint64
	}
	var entries []entry
	for w := s.memory.Journal().Walk(); w.Next(func(p journal.Part, key uint64, state []uint64) {
		if p.Names {
			return
		}
		entries = append(entries, entry{p, key, slices.Clone(state)})
	}); entries = entries[:0] {
		for _, e := range entries {
			if err := visit(e.part, e.key, e.state); err != nil {
				return err
			}
		}
	}
	return nil
}

// Entry is a key of a directory. The directory does not have its name: Key is its fingerprint.
type Entry struct {
	Namespace, Space string
	Key              uint64
	Limit            window.Limit
	Reading          window.Reading
}

// Dump calls visit for each key in a directory, in no particular order, with what it
// has used now under the limit with which it was last written. It changes nothing,
// needs no lock, and stops at the first error of visit, which it returns. It calls told
// for each damaged part, whose keys are missing or in an older state.
func Dump(dir string, visit func(Entry) error, told func(Event)) error {
	return dump(folder{dir: dir}, visit, told)
}

func dump(d disk, visit func(Entry) error, told func(Event)) error {
	s, _, err := look(d, told)
	if err != nil {
		return err
	}
	defer s.memory.Close()
	now := s.memory.Journal().Times()
	return s.walk(func(p journal.Part, key uint64, state []uint64) error {
		at := now.Steady
		if p.Limit.OnCalendar() {
			at = now.Wall
		}
		return visit(Entry{p.Space.Namespace(), p.Space.Name(), key, *p.Limit.Limit, p.Limit.Read(state, at)})
	})
}

// Compact writes the keys of a directory that have not expired to one file, and
// removes the others. Damaged files are kept under another name. It returns how many
// bytes the files had before and have now, and calls told for each damaged part. No
// process may use the directory.
func Compact(dir string, told func(Event)) (before, after int64, err error) {
	if _, err := listSome(folder{dir: dir}); err != nil {
		return 0, 0, err
	}
	d, held, err := lockFolder(dir)
	if err != nil {
		return 0, 0, err
	}
	before, after, err = compact(d, told)
	return before, after, errors.Join(err, held.Close())
}

func compact(d disk, told func(Event)) (before, after int64, err error) {
	s, segments, err := look(d, told)
	if err != nil {
		return 0, 0, err
	}
	defer s.memory.Close()
	w := s.writer
	for _, p := range segments {
		before += p.size
		w.header.File = max(w.header.File, p.number)
	}
	w.old, w.broken, w.hurry = segments, true, true
	for n := s.Stats().Compactions; s.Stats().Compactions == n; {
		if err := w.flush(false); err != nil {
			if w.file != nil { // all that the new file has is also in the old ones
				err = errors.Join(err, w.close(), d.remove(w.name))
			}
			return before, 0, err
		}
	}
	if err := errors.Join(w.flush(true), w.close(), d.sync()); err != nil {
		return before, 0, err
	}
	return before, w.size, nil
}

// Backup copies a directory to another one, which must not exist or be empty, and
// syncs it. A process may use the directory meanwhile: the copy has all that it had
// written at some instant during the call. To restore it, [Open] the copy. Backup
// returns how many bytes it has copied. A copy that was interrupted cannot be opened.
//
// Damaged parts are copied as they are, and told is called for each: when a disk fails, a
// backup of all that can be read is most useful, and the copy is loaded like the original.
func Backup(dir, to string, told func(Event)) (bytes int64, err error) {
	if _, err := listSome(folder{dir: dir}); err != nil {
		return 0, err
	}
	if err := makeFolder(to, syncFolder); err != nil {
		return 0, err
	}
	target := folder{dir: to}
	if names, err := target.names(); err != nil || len(names) > 0 {
		return 0, errors.Join(err, fmt.Errorf("%s is not empty", to))
	}
	return backup(folder{dir: dir}, target, told)
}

// removedTries is how often files may be removed while they are opened.
const removedTries = 100

func backup(d, to disk, told func(Event)) (bytes int64, err error) {
	for range removedTries {
		segments, err := listSome(d)
		if err != nil {
			return 0, err
		}
		// A file is removed when a later one is complete. Open files stay readable, so all
		// of them are opened before any is copied.
		sources, err := openAll(d, segments)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for i, p := range segments {
			err := p.readHeader(sources[i]) // again, because it may have been written since
			if err == nil {
				var n int64
				n, err = copySegment(p, sources[i], to)
				bytes += n
			}
			if err != nil {
				return bytes, errors.Join(err, closeAll(sources))
			}
		}
		for _, p := range segments {
			if err := to.rename(p.name+incomplete, p.name); err != nil {
				return bytes, errors.Join(err, closeAll(sources))
			}
		}
		needed, _ := split(segments)
		for _, e := range damageOf(needed) {
			if e.Kind != Torn { // a batch that a process is writing
				told(e)
			}
		}
		return bytes, errors.Join(closeAll(sources), to.sync())
	}
	return 0, errors.New("files are removed faster than they can be opened")
}

func openAll(d disk, segments []*segment) ([]source, error) {
	var sources []source
	for _, p := range segments {
		src, err := d.open(p.name)
		if err != nil {
			return nil, errors.Join(err, closeAll(sources))
		}
		sources = append(sources, src)
	}
	return sources, nil
}

func closeAll(sources []source) (err error) {
	for _, src := range sources {
		err = errors.Join(err, src.Close())
	}
	return err
}

// copySegment copies p up to the end of its last batch, with zeros in place of what cannot be
// read. The name of the copy says that it is incomplete.
func copySegment(p *segment, src source, to disk) (bytes int64, err error) {
	p.scanSource(src, nil)
	f, err := to.create(p.name + incomplete)
	if err != nil {
		return 0, err
	}
	end := max(p.good, min(p.size, format.HeaderSize))
	r := reader{src: src, size: end}
	for bytes < end && err == nil {
		b := r.bytes(bytes, copyAtOnce)
		if len(b) == 0 {
			break
		}
		_, err = f.Write(b)
		bytes += int64(len(b))
	}
	return bytes, errors.Join(err, f.Sync(), f.Close())
}

const copyAtOnce = 1 << 20
