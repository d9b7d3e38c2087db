package datadir

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// WithDisk makes the store write to d.
func WithDisk(d *Disk) Option { return func(c *config) { c.disk = d } }

// Resumed is resumed.
func Resumed(last window.Instant, then int64, thenBoot uint64, now int64, boot uint64, wall window.Instant) window.Instant {
	return resumed(last, then, thenBoot, now, boot, wall)
}

// WithAnyDisk makes the store write to d.
func WithAnyDisk(d *SlowDisk) Option { return func(c *config) { c.disk = d } }

// WithMachine sets the uptime of the machine, in microseconds, and a number for its
// start.
func WithMachine(up *int64, boot uint64) Option {
	return func(c *config) {
		c.uptime, c.startOf = func() int64 { return *up }, func() uint64 { return boot }
	}
}

// WithHurry sets how many bytes a flush writes of a compaction if there is a hurry.
func WithHurry(n int64) Option { return func(c *config) { c.hurried = n } }

// SlowDisk is a disk whose files can be opened a second time only after Release was
// closed. Reading is closed when a program waits for that.
type SlowDisk struct {
	*Disk
	Reading, Release chan struct{}
	opened           int
}

func (d *SlowDisk) open(name string) (source, error) {
	if d.opened++; d.opened == 2 {
		close(d.Reading)
		<-d.Release
	}
	return d.Disk.open(name)
}

// Closing returns a channel that is closed when Close is called.
func (s *Store) Closing() <-chan struct{} { return s.stop }

// Blob returns the data that this process or an earlier one has stored under a name.
func (s *Store) Blob(name string) []byte {
	s.blobs.mu.Lock()
	defer s.blobs.mu.Unlock()
	return slices.Clone(s.blobs.data[name])
}

// LaterVersion returns a file with the next version in both copies of its header.
func LaterVersion(file []byte) []byte {
	out := append([]byte(nil), file...)
	for _, one := range [][]byte{out[:format.HeaderSize/2], out[format.HeaderSize/2 : format.HeaderSize]} {
		binary.LittleEndian.PutUint32(one[8:], format.Version+1)
		sum := crc32.Checksum(one[:len(one)-4], crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(one[len(one)-4:], sum)
	}
	return out
}

// DumpOf is Dump of a disk, and CompactOf Compact.
func DumpOf(d *Disk, visit func(Entry) error, told func(Event)) error { return dump(d, visit, told) }

func CompactOf(d *Disk) error {
	_, _, err := compact(d, func(Event) {})
	return err
}

// BackupOf is Backup of a disk.
func BackupOf(d, to *Disk, told func(Event)) error {
	_, err := backup(d, to, told)
	return err
}

// MakeFolder is makeFolder.
func MakeFolder(dir string, sync func(dir string) error) error { return makeFolder(dir, sync) }

// FrameTarget is frameTarget.
const FrameTarget = frameTarget

// WithShards sets the number of shards of each space, as [memstore.WithShards] does,
// and at least 8.
func WithShards(n int) Option {
	return func(c *config) { c.memory = append(c.memory, memstore.WithShards(n)) }
}
