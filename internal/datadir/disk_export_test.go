package datadir

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// Disk is a directory in memory. It can fail, and it knows what was synced. Its
// methods are safe for concurrent use.
type Disk struct {
	mu     sync.Mutex
	files  map[string]*simFile // as a program sees them
	synced map[string]*simFile // the entries of the directory that were synced

	// Fail, if not nil, returns the error of an operation, before it has an effect:
	// "create", "write", "sync", "truncate", "remove", "rename", "open", "read" or "syncdir".
	// A write whose error is ErrShort writes half of its bytes.
	Fail func(operation, name string) error

	// Room, if positive, is how many bytes all files may have.
	Room int64

	// Opening, if not nil, is called before a file is opened.
	Opening func(name string)

	pause func() // see SetPause
}

// ErrShort is an error of [Disk.Fail].
var ErrShort = errors.New("short write")

type simFile struct {
	data     []byte
	synced   int // bytes of data
	from, to int // bytes that cannot be read
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{files: map[string]*simFile{}, synced: map[string]*simFile{}}
}

func (d *Disk) fail(operation, name string) error {
	if d.Fail == nil {
		return nil
	}
	return d.Fail(operation, name)
}

// PowerLoss drops what was not synced, but for some of it that r chooses: the system
// may have written any of it, in any order.
func (d *Disk) PowerLoss(r *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	names := slices.Sorted(maps.Keys(d.files))
	for name := range d.synced {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f := d.files[name]
		if was := d.synced[name]; was != f && (was != nil || f != nil) {
			if r.IntN(2) == 0 {
				f = was // the directory's entry was not written
			}
		}
		if f == nil {
			continue
		}
		data := slices.Clone(f.data[:f.synced])
		rest := f.data[f.synced:]
		switch r.IntN(4) {
		case 0: // nothing of it was written
		case 1: // all
			data = append(data, rest...)
		case 2: // a part
			data = append(data, rest[:r.IntN(len(rest)+1)]...)
		default: // its size, and some blocks
			for at := 0; at < len(rest); at += 512 {
				block := slices.Clone(rest[at:min(at+512, len(rest))])
				if r.IntN(2) == 0 {
					clear(block)
				}
				data = append(data, block...)
			}
		}
		g := &simFile{data: data, synced: len(data)}
		after.files[name], after.synced[name] = g, g
	}
	return after
}

// Clone returns the disk as a killed program leaves it.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	for name, f := range d.files {
		g := &simFile{data: slices.Clone(f.data), synced: len(f.data), from: f.from, to: f.to}
		after.files[name], after.synced[name] = g, g
	}
	return after
}

// Names returns the names of the files, sorted.
func (d *Disk) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files))
}

// Data returns the content of a file.
func (d *Disk) Data(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files[name].data)
}

// Spoil makes some bytes of a file unreadable, as a bad sector does.
func (d *Disk) Spoil(name string, from, to int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[name].from, d.files[name].to = from, to
}

// Readable returns the content of a file, with zeros in place of what cannot be read.
func (d *Disk) Readable(name string) []byte {
	data := d.Data(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	clear(data[min(f.from, len(data)):min(f.to, len(data))])
	return data
}

// Put makes data the content of a file.
func (d *Disk) Put(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &simFile{data: slices.Clone(data), synced: len(data)}
	d.files[name], d.synced[name] = f, f
}

// Drop removes a file.
func (d *Disk) Drop(name string) {
	if err := d.remove(name); err != nil {
		panic(err)
	}
}

// Size returns the bytes of all files.
func (d *Disk) Size() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size()
}

func (d *Disk) size() (n int64) {
	for _, f := range d.files {
		n += int64(len(f.data))
	}
	return n
}

// SetFail sets Fail.
func (d *Disk) SetFail(fail func(operation, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Fail = fail
}

// SetRoom sets Room.
func (d *Disk) SetRoom(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Room = n
}

// SetPause makes each write and sync call pause, unless it is nil.
func (d *Disk) SetPause(pause func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pause = pause
}

// paused calls pause, without the lock.
func (d *Disk) paused() {
	d.mu.Lock()
	pause := d.pause
	d.mu.Unlock()
	if pause != nil {
		pause()
	}
}

func (d *Disk) names() ([]string, error) { return d.Names(), nil }

func (d *Disk) create(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("create", name); err != nil {
		return nil, err
	}
	if d.files[name] != nil {
		return nil, fs.ErrExist
	}
	f := &simFile{}
	d.files[name] = f
	return &simHandle{d, name, f}, nil
}

func (d *Disk) extend(name string, size int64) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	if err := d.fail("truncate", name); err != nil {
		return nil, err
	}
	f.data = f.data[:size]
	f.synced = min(f.synced, len(f.data))
	return &simHandle{d, name, f}, nil
}

func (d *Disk) open(name string) (source, error) {
	if d.Opening != nil {
		d.Opening(name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("open", name); err != nil {
		return nil, err
	}
	f := d.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return &simSource{d, name, slices.Clone(f.data), f.from, f.to}, nil
}

func (d *Disk) length(name string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return 0, fs.ErrNotExist
	}
	return int64(len(f.data)), nil
}

func (d *Disk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("remove", name); err != nil {
		return err
	}
	if d.files[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *Disk) rename(name, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("rename", name); err != nil {
		return err
	}
	d.files[to] = d.files[name]
	delete(d.files, name)
	return nil
}

func (d *Disk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("syncdir", ""); err != nil {
		return err
	}
	d.synced = maps.Clone(d.files)
	return nil
}

type simHandle struct {
	d    *Disk
	name string
	f    *simFile
}

func (h *simHandle) Write(b []byte) (int, error) {
	h.d.paused()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	err := h.d.fail("write", h.name)
	if room := h.d.Room - h.d.size(); err == nil && h.d.Room > 0 && room < int64(len(b)) {
		h.f.data = append(h.f.data, b[:max(0, room)]...)
		return int(max(0, room)), errors.New("no space left on device")
	}
	if errors.Is(err, ErrShort) {
		h.f.data = append(h.f.data, b[:len(b)/2]...)
		return len(b) / 2, err
	}
	if err != nil {
		return 0, err
	}
	h.f.data = append(h.f.data, b...)
	return len(b), nil
}

func (h *simHandle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.fail("truncate", h.name); err != nil {
		return err
	}
	h.f.data = h.f.data[:size]
	h.f.synced = min(h.f.synced, len(h.f.data))
	return nil
}

func (h *simHandle) Sync() error {
	h.d.paused()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.fail("sync", h.name); err != nil {
		return err
	}
	h.f.synced = len(h.f.data)
	return nil
}

func (h *simHandle) Close() error { return nil }

type simSource struct {
	d        *Disk
	name     string
	data     []byte
	from, to int // cannot be read
}

func (s *simSource) ReadAt(b []byte, at int64) (int, error) {
	s.d.mu.Lock()
	err := s.d.fail("read", s.name)
	s.d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if at >= int64(len(s.data)) {
		return 0, io.EOF
	}
	n := copy(b, s.data[at:])
	if int(at) < s.to && int(at)+n > s.from {
		return max(s.from-int(at), 0), syscall.EIO
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (s *simSource) Size() int64  { return int64(len(s.data)) }
func (s *simSource) Close() error { return nil }
