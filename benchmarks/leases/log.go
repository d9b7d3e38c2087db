package main

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mono is the clock of the machine: it is the same for all processes, and nobody sets it.
var began, base = func() (time.Time, int64) {
	var base int64
	start := time.Now()
	for least, try := int64(math.MaxInt64), 0; try < 1000; try++ {
		before := int64(time.Since(start))
		now := machine()
		if took := int64(time.Since(start)) - before; took < least {
			least, base = took, now-before-took/2
		}
	}
	return start, base
}()

// machine reads the clock of the machine from the system.
func machine() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func mono() int64 { return int64(time.Since(began)) + base }

// admission is one hit: it was admitted at an instant not before from and not after to.
type admission struct{ from, to int64 }

// journal is what a node has done, in a file that is in its memory: it is whole up to the instant at which
// the node is killed.
type journal struct {
	*counts
	hits []admission
}

// counts are the head of a journal.
type counts struct {
	hits atomic.Int64 // the length of the journal
	offered, admitted, denied, failed,
	calls, // that the store got
	granted, spent, dropped, lost atomic.Int64
}

const head = 4096

// openJournal opens the file of a journal with room for some hits.
func openJournal(path string, room int) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := head + room*int(unsafe.Sizeof(admission{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &journal{(*counts)(unsafe.Pointer(&b[0])), unsafe.Slice((*admission)(unsafe.Pointer(&b[head])), room)}, nil
}

func (j *journal) admit(from, to, hits int64) {
	for range hits {
		n := j.counts.hits.Add(1)
		if n > int64(len(j.hits)) {
			panic("the journal is full")
		}
		j.hits[n-1] = admission{from, to}
	}
}

// read returns the hits. A node that was killed while it wrote one leaves it out.
func (j *journal) read() (all []admission) {
	for _, h := range j.hits[:j.counts.hits.Load()] {
		if h.to != 0 {
			all = append(all, h)
		}
	}
	return all
}

func (j *journal) close() error {
	size := head + len(j.hits)*int(unsafe.Sizeof(admission{}))
	if err := unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(j.counts)), size)); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}
