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

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

// Log is a log to read. [Run] opens each log in turn, and closes it before it
// opens the next one. Data in gzip or zstd format is unpacked, whatever the log's name.
type Log struct {
	// Name appears in reports and errors.
	Name string
	// Open returns the log's data.
	Open func() (io.ReadCloser, error)
	// Once reports that Open can be called only once, as for a pipe.
	Once bool
	// Told, if it is not nil, is called with the number of bytes of each read.
	Told func(n int)
}

// File returns the log in the named file; "-" is in. told becomes [Log.Told].
func File(name string, in io.Reader, told func(n int)) Log {
	if name == "-" {
		return Log{Name: "stdin", Open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }, Once: true, Told: told}
	}
	info, err := os.Stat(name)
	return Log{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }, Once: err == nil && !info.Mode().IsRegular() && !info.IsDir(), Told: told}
}

// counted reports the number of bytes that were read.
type counted struct {
	io.ReadCloser
	told func(n int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.told != nil {
		c.told(n)
	}
	return n, err
}

// blockSize is the number of bytes to read at a time, and the length of the longest
// line.
const blockSize = 512 << 10

var errSecrets = errors.New("holds keys or tokens, which are not shown here, and no log")

var errLongLine = fmt.Errorf("longer than %d bytes", blockSize)

// block is a part of a log. Attributes of requests are parts of its text.
type block struct {
	log   string
	first bool   // the log begins here
	text  string // whole lines; a log's last line may have no newline
	cut   bool   // text is the start of a line that is too long
	err   error  // ends the logs
}

// ahead is the number of blocks that the reader may be ahead of the replay.
const ahead = 2

// reader reads logs in a separate goroutine, so that a second core can unpack.
type reader struct {
	ctx    context.Context // a reader lives as long as one call of Run
	blocks chan block
}

// read sends the logs in blocks until an error, or until the context is done.
func (r *reader) read(logs []Log) {
	defer close(r.blocks)
	buffer := make([]byte, blockSize)
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
		if err := l.read(buffer, send); err != nil {
			send(block{err: l.named(err)})
			return
		}
		if r.ctx.Err() != nil {
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

// read sends the log in blocks, until the context is done. It reads into buffer.
func (l Log) read(buffer []byte, send func(block) bool) error {
	file, err := l.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := unpacked(&counted{file, l.Told})
	if err != nil {
		return err
	}

	kept := 0                  // bytes of an incomplete line, at the buffer's start
	first, skip := true, false // skip: inside a line that is too long
	for {
		n, err := fill(in, buffer[kept:])
		text := buffer[:kept+n]
		if first && files.HoldsSecrets(text[:min(len(text), 4<<10)]) {
			return errSecrets // the report repeats lines
		}
		first = false
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
			return nil // Run reports that the context is done
		}
		kept = copy(buffer, text[whole:])
		if err != nil {
			return ignoreEOF(err)
		}
		if kept == len(buffer) {
			if !send(block{text: string(buffer[:excerptLength+1]), cut: true}) {
				return nil // as above
			}
			kept, skip = 0, true
		}
	}
}

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

// unpacked returns a reader of file that unpacks data in gzip or zstd format.
func unpacked(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 128<<10)
	switch magic, err := in.Peek(4); {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return gzip.NewReader(in)
	case string(magic) == "\x28\xb5\x2f\xfd":
		return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	default:
		return in, ignoreEOF(err)
	}
}
