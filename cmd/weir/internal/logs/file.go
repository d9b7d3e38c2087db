package logs

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// File returns the log in the named file; "-" is in. Data in zstd format is
// unpacked, whatever the log's name. Package replay unpacks gzip. told, if it is not
// nil, is called with the number of bytes of each read of the file.
func File(name string, in io.Reader, told func(n int)) replay.Log {
	open := func() (io.ReadCloser, error) { return os.Open(name) }
	if name == "-" {
		name = "stdin"
		open = func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	}
	return replay.Log{Name: name, Open: func() (io.ReadCloser, error) {
		file, err := open()
		if err != nil {
			return nil, err
		}
		unpacked, err := unpack(&counted{file, told})
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return &opened{unpacked, file}, nil
	}}
}

// unpack returns a reader of in that unpacks zstd data.
func unpack(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 128<<10)
	if magic, _ := b.Peek(4); string(magic) != "\x28\xb5\x2f\xfd" {
		return b, nil
	}
	d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// opened is an open log.
type opened struct {
	io.Reader
	file io.Closer
}

func (o *opened) Close() error {
	if c, ok := o.Reader.(io.Closer); ok {
		_ = c.Close() // of the decoder, which has no resource but memory
	}
	return o.file.Close()
}

// counted tells of the bytes that were read.
type counted struct {
	io.Reader
	told func(n int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.told != nil {
		c.told(n)
	}
	return n, err
}
