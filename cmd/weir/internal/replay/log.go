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
	"unsafe"
)

// Log is a log to read. [Run] opens each log in turn, and closes it before it
// opens the next one. Data in gzip format is unpacked, whatever the log's name.
type Log struct {
	// Name appears in reports and errors.
	Name string
	// Open returns the log's data.
	Open func() (io.ReadCloser, error)
}

// File returns the log in the named file. "-" is the standard input.
func File(name string) Log {
	if name == "-" {
		return Log{"stdin", func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }}
	}
	return Log{name, func() (io.ReadCloser, error) { return os.Open(name) }}
}

// blockSize is the number of bytes to read at a time, and the length of the longest
// line. It fits into a core's cache. With half of it the reader is woken twice as often,
// and a replay takes 2.5 % more processor time.
const blockSize = 512 << 10

var errLongLine = fmt.Errorf("longer than %d bytes", blockSize)

// block is a part of a log. Its lines become requests without a copy: attributes
// are parts of the text and share its memory.
type block struct {
	log   string
	first bool   // the log begins here
	text  string // whole lines; a log's last line may have no newline
	cut   bool   // text is the start of a line that is too long
	err   error  // ends the logs

	// memory is the memory of text, or nil. After [reader.free] the text and all
	// that shares its memory must not be used.
	memory []byte
}

// buffers is the number of blocks that exist at a time: one that the reader fills,
// one that is replayed, and two in between. The reader uses their memory again and
// again, because new memory for each block costs a copy of the whole log.
const buffers = 4

// reader reads logs beside the engine, so that a second core can unpack.
type reader struct {
	ctx    context.Context // a reader lives as long as one call of Run
	blocks chan block
	unused chan []byte // nil stands for memory that is not allocated yet
}

func newReader(ctx context.Context) *reader {
	r := &reader{ctx: ctx, blocks: make(chan block, buffers-2), unused: make(chan []byte, buffers)}
	for range buffers {
		r.unused <- nil
	}
	return r
}

// free gives the memory of b back to the reader. It never blocks.
func (r *reader) free(b block) {
	if b.memory != nil {
		r.unused <- b.memory
	}
}

// buffer waits for unused memory. It returns nil when the context is done.
func (r *reader) buffer() []byte {
	select {
	case b := <-r.unused:
		if b == nil {
			b = make([]byte, blockSize)
		}
		return b
	case <-r.ctx.Done():
		return nil
	}
}

// read sends the logs in blocks until an error, or until the context is done.
func (r *reader) read(logs []Log) {
	defer close(r.blocks)
	buffer := r.buffer()
	for _, l := range logs {
		first := true
		send := func(b block) bool {
			b.log, b.first, first = l.Name, first, false
			select {
			case r.blocks <- b:
				return true
			case <-r.ctx.Done():
				return false
			}
		}
		var err error
		if buffer, err = l.read(r, buffer, send); err != nil {
			send(block{err: l.named(err)})
			return
		}
		if buffer == nil || r.ctx.Err() != nil {
			return
		}
	}
}

// named adds the log's name to err. Errors of files already have it.
func (l Log) named(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", l.Name, err)
}

// read sends the log in blocks. It reads into buffer, and returns the buffer that
// it holds at the end, which is nil if the context is done.
func (l Log) read(r *reader, buffer []byte, send func(block) bool) ([]byte, error) {
	file, err := l.Open()
	if err != nil {
		return buffer, err
	}
	defer file.Close()
	in, err := unpacked(file)
	if err != nil {
		return buffer, err
	}

	kept := 0     // bytes of an incomplete line, at the buffer's start
	skip := false // inside a line that is too long
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
		next := buffer
		if whole > 0 {
			if next = r.buffer(); next == nil {
				return nil, nil // Run reports that the context is done
			}
		}
		kept = copy(next, text[whole:])
		if whole > 0 && !send(block{text: view(text[:whole]), memory: buffer}) {
			return nil, nil // as above
		}
		if buffer = next; err != nil {
			return buffer, ignoreEOF(err)
		}
		if kept == len(buffer) {
			if !send(block{text: string(buffer[:excerptLength+1]), cut: true}) {
				return nil, nil // as above
			}
			kept, skip = 0, true
		}
	}
}

// view returns b as a string without a copy. The string changes when b does.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// fill reads until p is full or there is an error. [io.ReadFull] would return the
// same error for the end of the log and for truncated data.
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

// unpacked returns a reader of file that unpacks gzip data.
func unpacked(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return in, ignoreEOF(err)
	}
	return gzip.NewReader(in)
}
