package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// floorBytes is about what package durable writes in an interval of -do write.
const floorBytes = 1_700_000

// floor is a file that a goroutine writes and syncs floorBytes to, once in an interval.
// It has no keys: what a call takes longer beside it is what the system takes for the
// writing itself.
type floor struct {
	file        *os.File
	stop, ended chan struct{}
	err         error // of writing; set before ended is closed
}

func openFloor(dir string) (*floor, error) {
	file, err := os.Create(filepath.Join(dir, "floor"))
	if err != nil {
		return nil, err
	}
	f := &floor{file: file, stop: make(chan struct{}), ended: make(chan struct{})}
	go f.run()
	return f, nil
}

func (f *floor) run() {
	defer close(f.ended)
	frame := make([]byte, 128<<10)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for f.err == nil {
		select {
		case <-tick.C:
			for left := floorBytes; left > 0 && f.err == nil; left -= len(frame) {
				_, f.err = f.file.Write(frame[:min(left, len(frame))])
			}
			f.err = errors.Join(f.err, f.file.Sync())
		case <-f.stop:
			return
		}
	}
}

func (f *floor) close() error {
	close(f.stop)
	<-f.ended
	return errors.Join(f.err, f.file.Close())
}
