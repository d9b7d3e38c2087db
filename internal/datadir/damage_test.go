package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// frame is a frame of a healthy file, as package format reads it by itself.
type frame struct {
	format.Frame
	from, to int
	spaces   int
	entries  []written
}

// written is a key with its state, in the order of the file.
type written struct {
	space format.SpaceID
	key   uint64
	state []uint64
}

// framesOf reads the frames of a healthy file. Each of them is read without the others.
func framesOf(t testing.TB, file []byte) (all []frame) {
	t.Helper()
	for at := format.HeaderSize; at < len(file); {
		f, ok := format.ReadFrame(file[at:])
		payload := file[at+format.FrameSize:]
		if !ok || len(payload) < f.Length || !f.Fits(payload[:f.Length]) {
			t.Fatalf("offset %d: not a frame", at)
		}
		fr, known, of := frame{Frame: f, from: at, to: at + format.FrameSize + f.Length}, map[format.SpaceID]bool{}, format.SpaceID(0)
		if err := format.Read(payload[:f.Length], f.Base, &format.Visitor{
			Space: func(id format.SpaceID, _ format.Space) { known[id] = true; fr.spaces++ },
			Keys: func(id format.SpaceID) bool {
				if of = id; !known[id] {
					t.Errorf("the frame at %d has keys of a space that it does not have", at)
				}
				return true
			},
			Key: func(key uint64, state []uint64) {
				fr.entries = append(fr.entries, written{of, key, slices.Clone(state)})
			},
		}); err != nil {
			t.Fatal(err)
		}
		all = append(all, fr)
		at = fr.to
	}
	return all
}

// counted identifies a key.
type counted struct {
	space string
	key   uint64
}

// healthy returns what the healthy frames of a damaged copy say, by a reader that only
// asks whether all bytes of a frame are there.
func (m *many) healthy(damaged *datadir.Disk) map[counted]int64 {
	var needed []frame
	for _, name := range damaged.Names() {
		left, header := damaged.Readable(name), m.files[name][:format.HeaderSize/2]
		if !bytes.Contains(left, header) {
			continue // without a header the secret is lost
		}
		var found []frame
		whole, end := false, format.HeaderSize
		sound := bytes.HasPrefix(left, header) || len(left) > len(header) && bytes.HasPrefix(left[len(header):], header)
		for _, f := range m.frames[name] {
			at := bytes.Index(left, m.files[name][f.from:f.to])
			if at < 0 {
				continue
			}
			sound = sound && at == end && int(f.Seq) == len(found)+1
			end = at + f.to - f.from
			whole = whole || f.Flags&format.Whole != 0
			found = append(found, f)
		}
		if sound && whole { // it has all keys
			needed = nil
		}
		needed = append(needed, found...)
	}
	counts := map[counted]int64{}
	for _, f := range needed {
		for _, e := range f.entries {
			k := counted{m.names[e.space], e.key}
			if delete(counts, k); len(e.state) > 0 {
				counts[k] = m.limits[k.space].Read(e.state, window.At(time.Now())).Used
			}
		}
	}
	return counts
}

// dumped returns what a program loads from a disk.
func dumped(t testing.TB, d *datadir.Disk) (counts map[counted]int64, events []datadir.Event) {
	t.Helper()
	counts = map[counted]int64{}
	err := datadir.DumpOf(d, func(e datadir.Entry) error {
		counts[counted{e.Space, e.Key}] = e.Reading.Used
		return nil
	}, func(e datadir.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	return counts, events
}

// many is a directory with the counters of several spaces, with small and large states,
// in several files.
type many struct {
	disk   *datadir.Disk
	files  map[string][]byte
	frames map[string][]frame // of files
	counts map[counted]int64  // in all files
	names  map[format.SpaceID]string
	limits map[string]*window.Compiled
}

func newMany(t testing.TB, r *rand.Rand) *many {
	t.Helper()
	m := &many{
		disk: datadir.NewDisk(), names: map[format.SpaceID]string{}, limits: map[string]*window.Compiled{
			"calls": ever, "members": window.MustCompile(window.Limit{Quota: 5000, Window: window.Sliding(24 * time.Hour), Measure: window.Distinct}),
		},
	}
	for i := range 5 {
		m.limits[fmt.Sprint("rule-", i)] = ever
	}
	spaces := map[string]*store.Space{}
	for name := range m.limits {
		spaces[name] = store.NewSpace("tenant", name, name, 0)
		m.names[format.IDOf("tenant", name)] = name
	}
	m.disk.SetFail(func(operation, _ string) error {
		if operation == "remove" { // superfluous files stay, as when a process is killed
			return errors.New("not removed")
		}
		return nil
	})
	for range 1 + r.IntN(3) {
		s := mustOpen(t, m.disk, datadir.WithInterval(time.Hour))
		for range 1 + r.IntN(6) {
			if r.IntN(3) == 0 { // the next file
				if err := s.RotateSecret(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			for name, limit := range m.limits {
				for range r.IntN(60) {
					key := fmt.Sprint(r.IntN(40))
					for member := range 1 + r.IntN(200)*(len(name)/7) {
						if _, err := one(t.Context(), s, store.Take, spaces[name], limit, key, fmt.Sprint(member), 1); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	m.disk.SetFail(nil)
	m.read(t)
	return m
}

// read reads what the disk has while it is healthy.
func (m *many) read(t testing.TB) {
	t.Helper()
	m.files, m.frames = map[string][]byte{}, map[string][]frame{}
	for _, name := range m.disk.Names() {
		m.files[name] = m.disk.Data(name)
		m.frames[name] = framesOf(t, m.files[name])
	}
	m.counts, _ = dumped(t, m.disk)
}

// check compares what is loaded from a damaged copy with what is healthy in it.
func (m *many) check(t testing.TB, what string, damaged *datadir.Disk, silent bool) {
	t.Helper()
	want := m.healthy(damaged)
	if len(damaged.Names()) == 0 { // a dump refuses it
		return
	}
	got, events := dumped(t, damaged)
	if !maps.Equal(got, want) {
		t.Fatalf("%s: got %d keys, %v\nwant %d, %v\nevents %v", what, len(got), got, len(want), want, events)
	}
	for key, n := range got {
		if n > m.counts[key] {
			t.Fatalf("%s: %v: got %d, more than were counted, %d", what, key, n, m.counts[key])
		}
	}
	if !silent && len(events) == 0 && !maps.Equal(got, m.counts) {
		t.Fatalf("%s: something is lost, and nothing is told", what)
	}
	for range 2 { // a process starts, and another one
		mustOpen(t, damaged).Close()
		if again, _ := dumped(t, damaged); !maps.Equal(again, want) {
			t.Fatalf("%s: after a start: got %v\nwant %v", what, again, want)
		}
	}
}

// damage damages a copy of a directory in one way, and checks what is loaded.
func (m *many) damage(t testing.TB, r *rand.Rand) {
	t.Helper()
	damaged := m.disk.Clone()
	name := slices.Sorted(maps.Keys(m.files))[r.IntN(len(m.files))]
	data := damaged.Data(name)
	what, silent := name, false
	switch at := r.IntN(len(data)); r.IntN(7) {
	case 0:
		data[at] ^= 1 << r.IntN(8)
		what += fmt.Sprint(": flipped at ", at)
	case 1:
		data, silent = data[:at], true // also at the end of a frame
		what += fmt.Sprint(": cut at ", at)
	case 2:
		silent = true
		what += ": removed"
		damaged.Drop(name)
	case 3: // some sectors cannot be read
		at -= at % 4096
		end := min(len(data), at+4096*(1+r.IntN(3)))
		what += fmt.Sprint(": unreadable from ", at, " to ", end)
		damaged.Spoil(name, at, end)
		m.check(t, what, damaged, false)
		return
	default: // a part of any size is lost, or overwritten
		end := min(len(data), at+1<<r.IntN(20))
		what += fmt.Sprint(": from ", at, " to ", end)
		if silent = end == len(data); r.IntN(2) == 0 {
			data = slices.Delete(slices.Clone(data), at, end)
		} else {
			clear(data[at:end])
		}
	}
	if len(damaged.Names()) == len(m.files) {
		damaged.Put(name, data)
	}
	m.check(t, what, damaged, silent)
}

// A directory that is damaged anywhere in any way: each key has the state that the last
// healthy frame says, none has another one, and none has more than was counted.
func TestDamagedAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		damagedAnywhere(t, seed)
	}
}

// A small file that was cut at any byte, or has a bit flipped in any byte, is no exception.
func TestDamagedAtEachByte(t *testing.T) {
	t.Parallel()
	m := &many{disk: fill(t, 2, 2), names: map[format.SpaceID]string{format.IDOf("", "crash"): "crash"}, limits: map[string]*window.Compiled{"crash": ever}}
	m.read(t)
	name := m.disk.Names()[0]
	for at := range len(m.files[name]) {
		cut, flipped, data := datadir.NewDisk(), datadir.NewDisk(), slices.Clone(m.files[name])
		cut.Put(name, data[:at])
		m.check(t, fmt.Sprint("cut at ", at), cut, true)
		data[at] ^= 1 << (at % 8)
		flipped.Put(name, data)
		m.check(t, fmt.Sprint("flipped at ", at), flipped, false)
	}
}

func FuzzDamagedAnywhere(f *testing.F) {
	f.Add(uint64(5))
	f.Fuzz(damagedAnywhere)
}

func damagedAnywhere(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 28))
	m := newMany(t, r)
	m.check(t, "healthy", m.disk.Clone(), false)
	for range 20 {
		m.damage(t, r)
	}
}

// One flipped bit in a file with 100,000 keys costs the keys of its frame, whichever
// that is, the first one too.
func TestFlippedBitCostsOneFrame(t *testing.T) {
	t.Parallel()
	const keys = 100_000
	disk := fill(t, keys, 1)
	if err := datadir.CompactOf(disk); err != nil {
		t.Fatal(err)
	}
	name := disk.Names()[0]
	frames := framesOf(t, disk.Data(name))
	for _, i := range []int{0, 1, len(frames) / 2} {
		data, f := disk.Data(name), frames[i]
		data[f.from+format.FrameSize+100] ^= 4
		damaged := datadir.NewDisk()
		damaged.Put(name, data)
		got, events := dumped(t, damaged)
		if want := keys - len(f.entries); len(got) != want || len(f.entries) > 20_000 {
			t.Errorf("frame %d of %d: got %d keys, want %d", i+1, len(frames), len(got), want)
		}
		if len(events) != 1 || events[0].Kind != datadir.Damaged || events[0].File != name || events[0].Offset != int64(f.from) || events[0].Bytes != int64(f.to-f.from) || events[0].Lost != 1 {
			t.Errorf("frame %d: got events %v, want one with its place", i+1, events)
		}
	}
}

// A sector that is lost, or cannot be read, costs the keys of the frames in it, even if it is the
// sector with the header. A backup has all other keys.
func TestLostSectorCostsItsFrames(t *testing.T) {
	t.Parallel()
	const keys, sector = 50_000, 4096
	disk := fill(t, keys, 1)
	if err := datadir.CompactOf(disk); err != nil {
		t.Fatal(err)
	}
	name := disk.Names()[0]
	data := disk.Data(name)
	frames := framesOf(t, data)
	for _, at := range []int{0, 50 * sector, len(data) / sector * sector} {
		want := keys
		for _, f := range frames {
			if f.from < at+sector && f.to > at {
				want -= len(f.entries)
			}
		}
		lost, unreadable := disk.Clone(), disk.Clone()
		zeroed := slices.Clone(data)
		clear(zeroed[at:min(at+sector, len(data))])
		lost.Put(name, zeroed)
		unreadable.Spoil(name, at, at+sector)
		for what, damaged := range map[string]*datadir.Disk{"lost": lost, "unreadable": unreadable} {
			got, events := dumped(t, damaged)
			if len(got) != want || len(events) == 0 {
				t.Errorf("%s at %d: got %d keys, want %d, events %v", what, at, len(got), want, events)
			}
			backup := datadir.NewDisk()
			told := 0
			if err := datadir.BackupOf(damaged, backup, func(datadir.Event) { told++ }); err != nil || told == 0 {
				t.Errorf("%s at %d: backup: got error %v, %d events", what, at, err, told)
				continue
			}
			if got, _ := dumped(t, backup); len(got) != want {
				t.Errorf("%s at %d: got %d keys in the backup, want %d", what, at, len(got), want)
			}
		}
	}
}

// One damaged copy of a header costs nothing. It is reported, and the next start writes a file with two good ones.
func TestDamagedCopyOfHeader(t *testing.T) {
	t.Parallel()
	const keys = 100
	disk := fill(t, keys, 1)
	name := disk.Names()[0]
	for at := 10; at < format.HeaderSize; at += format.HeaderSize / 2 {
		damaged := disk.Clone()
		data := slices.Clone(disk.Data(name))
		data[at] ^= 1
		damaged.Put(name, data)
		got, events := dumped(t, damaged)
		if len(got) != keys || len(events) != 1 || events[0].Kind != datadir.Damaged || events[0].Bytes != format.HeaderSize || !strings.Contains(events[0].String(), "no batch") {
			t.Errorf("byte %d: got %d keys, want %d, and events %v", at, len(got), keys, events)
		}
		if err := datadir.CompactOf(damaged); err != nil {
			t.Fatal(err)
		}
		if got, events := dumped(t, damaged); len(got) != keys || len(events) != 0 {
			t.Errorf("byte %d, after a compaction: got %d keys, want %d, and events %v", at, len(got), keys, events)
		}
	}
}

// A file that lost its header and all copies of it is damaged in one place.
func TestLostHeader(t *testing.T) {
	t.Parallel()
	disk := fill(t, 100_000, 1)
	name := disk.Names()[0]
	data := disk.Data(name)
	frames := framesOf(t, data)
	clear(data[:format.HeaderSize])
	copies := 0
	for _, f := range frames {
		_ = format.Read(data[f.from+format.FrameSize:f.to], f.Base, &format.Visitor{Header: func(format.Header) {
			copies++
			data[f.from] ^= 1
		}})
	}
	if copies == 0 || copies == len(frames) {
		t.Fatalf("got %d copies in %d frames, want some", copies, len(frames))
	}
	disk.Put(name, data)
	if got, events := dumped(t, disk); len(got) != 0 || len(events) != 1 || !errors.Is(events[0].Err, format.ErrHeader) {
		t.Errorf("got %d keys, events %v, want the loss of the header", len(got), events)
	}
}

// A file that comes from another directory is told, not loaded, and kept.
func TestFileOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	disk, other := fill(t, 10, 1), fill(t, 20, 1)
	if err := datadir.CompactOf(disk); err != nil {
		t.Fatal(err)
	}
	foreign := other.Names()[0]
	if slices.Contains(disk.Names(), foreign) {
		t.Fatalf("got %v, want a second file", disk.Names())
	}
	// The newest file lacks the sign that it has all keys, so that the one before it is needed.
	own := disk.Names()[0]
	disk.Put(own, disk.Data(own)[:format.HeaderSize])
	disk.Put(foreign, other.Data(foreign))
	got, events := dumped(t, disk)
	if len(got) != 0 || len(events) != 1 || events[0].File != foreign || !strings.Contains(events[0].String(), "another directory") {
		t.Errorf("got %d keys, events %v, want that %s is of another directory", len(got), events, foreign)
	}
	if err := datadir.CompactOf(disk); err != nil {
		t.Fatal(err)
	}
	if kept := disk.Data(foreign + ".damaged"); !bytes.Equal(kept, other.Data(foreign)) {
		t.Errorf("got %v, want the file kept", disk.Names())
	}
}

// Frames end by bytes: however large the states, a frame exceeds its target by one key
// at most, and what is written is loaded.
func TestLargeStates(t *testing.T) {
	t.Parallel()
	const keys, members = 300, 10_000
	limit := window.MustCompile(window.Limit{Quota: members, Window: window.Sliding(24 * time.Hour), Measure: window.Distinct})
	of := store.NewSpace("", "large", "large", 0)
	disk := datadir.NewDisk()
	s := mustOpen(t, disk, datadir.WithInterval(time.Hour), datadir.WithShards(8))
	for i := range members - 1 {
		if _, err := one(t.Context(), s, store.Take, of, limit, "0", fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	var large []uint64
	j := s.Memory().Journal()
	j.Walk().Next(func(_ journal.Part, _ uint64, state []uint64) { large = slices.Clone(state) })
	put := j.Restore(journal.Part{Space: of, Limit: limit})
	for i := range keys { // so that they need not be taken member by member
		op := store.Op{Space: of, Limit: limit, Key: fmt.Append(nil, i), Member: []byte("first"), N: 1}
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	var all []uint64
	for w := j.Walk(); w.Next(func(_ journal.Part, key uint64, _ []uint64) { all = append(all, key) }); {
	}
	for _, key := range all {
		put.Put(key, large)
	}
	for i := range keys {
		if _, err := one(t.Context(), s, store.Take, of, limit, fmt.Sprint(i), "last", 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, name := range disk.Names() {
		for _, f := range framesOf(t, disk.Data(name)) {
			most = max(most, f.Length)
		}
	}
	if allowed := datadir.FrameTarget + 10*len(large) + 1000; most > allowed {
		t.Errorf("got a payload of %d bytes, want at most %d", most, allowed)
	}
	s = mustOpen(t, disk)
	defer s.Close()
	for i := range keys {
		r, err := s.Read(t.Context(), &store.Op{Space: of, Limit: limit, Key: fmt.Append(nil, i)})
		if err != nil || r.Used != members {
			t.Fatalf("key %d: got %d members, %v, want %d", i, r.Used, err, members)
		}
	}
}

// Blobs do not make frames large together.
func TestLargeBlobs(t *testing.T) {
	t.Parallel()
	disk := datadir.NewDisk()
	s := mustOpen(t, disk, datadir.WithInterval(time.Hour))
	take(t, s, 10)
	for i := range 40 {
		s.PutBlob(fmt.Sprint(i), make([]byte, 1<<20))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range framesOf(t, disk.Data(disk.Names()[0])) {
		if f.Length > 1<<20+datadir.FrameTarget {
			t.Errorf("got a payload of %d bytes", f.Length)
		}
	}
	s = mustOpen(t, disk)
	defer s.Close()
	if got := usedOf(t, s, 3); got != 1 || len(s.Blob("39")) != 1<<20 {
		t.Errorf("got %d used, a blob of %d bytes", got, len(s.Blob("39")))
	}
}

// The parents of directories that are made are synced, and no others.
func TestParentsAreSynced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		make string
		want []string
	}{
		{filepath.Join(dir, "a", "b", "data"), []string{filepath.Join(dir, "a", "b"), filepath.Join(dir, "a"), dir}},
		{filepath.Join(dir, "a", "b", "data"), nil},
		{filepath.Join(dir, "a", "other") + "/", []string{filepath.Join(dir, "a")}},
	} {
		var got []string
		if err := datadir.MakeFolder(test.make, func(dir string) error { got = append(got, dir); return nil }); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.make, got, err, test.want)
		}
	}
	failed := errors.New("failed")
	if err := datadir.MakeFolder(filepath.Join(dir, "c"), func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got error %v, want that of the sync", err)
	}
}
