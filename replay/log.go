package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Log is a log to read. Run opens it when its turn comes and closes it after.
// What starts as gzip data does is unpacked, whatever its name.
type Log struct {
	// Name is for people.
	Name string
	Open func() (io.ReadCloser, error)
}

// File is the log in the named file; "-" is the standard input.
func File(name string) Log {
	if name == "-" {
		return Log{"stdin", func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }}
	}
	return Log{name, func() (io.ReadCloser, error) { return os.Open(name) }}
}

// blockSize is what is read at a time, and the longest line. It fits a core's
// cache.
const blockSize = 256 << 10

var errLongLine = fmt.Errorf("longer than %d bytes", blockSize)

// block is a part of a log. Its lines become requests without being copied:
// attributes are text, and a text's parts share its memory.
type block struct {
	log   string
	first bool   // the log begins here
	text  string // whole lines; the last one of a log may lack its newline
	cut   bool   // text is the start of a line that is too long
	err   error  // why there is no more
}

// read sends the logs in blocks, until an error or the end of ctx. It runs
// beside the engine, so that unpacking has a core of its own.
func read(ctx context.Context, logs []Log, out chan<- block) {
	buffer := make([]byte, blockSize)
	for _, l := range logs {
		first := true
		send := func(b block) bool {
			b.log, b.first, first = l.Name, first, false
			select {
			case out <- b:
				return true
			case <-ctx.Done():
				return false
			}
		}
		if err := l.read(buffer, send); err != nil {
			send(block{err: l.named(err)})
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// named is err with the log's name, which those of files have already.
func (l Log) named(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", l.Name, err)
}

func (l Log) read(buffer []byte, send func(block) bool) error {
	file, err := l.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := unpacked(file)
	if err != nil {
		return err
	}

	kept := 0     // bytes of a line that is not whole yet, at the buffer's start
	skip := false // the rest of a line that is too long is still to come
	for {
		n, err := fill(in, buffer[kept:])
		text := buffer[:kept+n]
		if skip {
			end := bytes.IndexByte(text, '\n') + 1
			if skip = end == 0; skip {
				end = len(text)
			}
			text = text[end:]
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		if errors.Is(err, io.EOF) {
			whole = len(text)
		}
		if whole > 0 && !send(block{text: string(text[:whole])}) {
			return nil
		}
		if err != nil {
			return ignoreEOF(err)
		}
		if kept = copy(buffer, text[whole:]); kept == len(buffer) {
			if !send(block{text: string(buffer[:excerptLength+1]), cut: true}) {
				return nil
			}
			kept, skip = 0, true
		}
	}
}

// fill reads until p is full or there is an error. [io.ReadFull] would give
// the end of the log and data that breaks off one and the same error.
func fill(in io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = in.Read(p[n:])
		n += m
	}
	return n, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// unpacked is file, unpacked when it starts as gzip data does.
func unpacked(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return in, ignoreEOF(err)
	}
	return gzip.NewReader(in)
}
