package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/datadir/internal/format"
)

// Files are called by their numbers, so that their names sort by age. A file of
// which a part could not be read is renamed when it is not needed any more, and kept.
const (
	suffix  = ".log"
	damaged = ".damaged"
)

func nameOf(number uint64) string { return fmt.Sprintf("%010d%s", number, suffix) }

// numberOf returns the number in the name of a file, and false for other names.
func numberOf(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
	return number, err == nil && number > 0 && name == nameOf(number)
}

// piece is one file of a directory.
type piece struct {
	name   string
	number uint64
	header format.Header
	valid  bool // the header is known
	copied bool // the header is damaged, and known by its copy in a frame
	size   int64

	// What a scan found:
	last    format.Frame
	good    int64  // the end of the last frame
	whole   int64  // the end of the last frame that is marked so; 0: none
	frames  int64  // read
	holes   []hole // what is no frame, between frames
	trouble error  // the first one that the system had with the file
}

// hole is a part of a file that is no frame of it, and the number of frames that are
// missing there. A part that was cut out whole has a hole without bytes.
type hole struct{ from, to, lost int64 }

// damaged reports whether a part of p that other frames follow could not be read, or
// the system failed to read p. A file that ends with its header is not damaged: the
// header is synced before a frame is written.
func (p *piece) damaged() bool {
	return len(p.holes) > 0 || p.trouble != nil || !p.valid && p.size > format.HeaderSize
}

// torn returns how many bytes at the end of p are no frame.
func (p *piece) torn() int64 { return p.size - max(p.good, min(p.size, format.HeaderSize)) }

// list returns the files of d, the oldest first, with their headers. The error is one of
// the directory, or a [*format.NewerError] in a text that names the file.
func list(d disk) ([]*piece, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	var pieces []*piece
	for _, name := range names {
		number, ok := numberOf(name)
		if !ok {
			continue
		}
		p := &piece{name: name, number: number}
		pieces = append(pieces, p)
		src, err := d.open(name)
		if err != nil {
			p.trouble = err
			continue
		}
		if err := errors.Join(p.readHeader(src), src.Close()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(pieces, func(p, q *piece) int { return cmp.Compare(p.number, q.number) })
	return pieces, nil
}

// readHeader reads the header of p, or its copy in a frame. Its error is one of a later
// version.
func (p *piece) readHeader(src source) error {
	p.size = src.Size()
	r := reader{src: src, size: p.size}
	h, err := format.ReadHeader(r.bytes(0, format.HeaderSize))
	var newer *format.NewerError
	if errors.As(err, &newer) {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.header, p.valid, p.copied = h, err == nil && h.File == p.number, false
	if !p.valid && p.size > format.HeaderSize {
		p.scanSource(src, func(fr *format.Frame, payload []byte) {
			_ = format.Read(payload, fr.Base, &format.Visitor{Header: func(h format.Header) {
				p.header, p.valid, p.copied = h, true, true
			}})
		})
		if !p.valid {
			p.holes = nil // all of it is lost
		}
	}
	return nil
}

// scan calls f for each frame of p, in order, with its payload, which f must not keep.
func (p *piece) scan(d disk, f func(fr *format.Frame, payload []byte)) {
	if !p.valid {
		return
	}
	src, err := d.open(p.name)
	if err != nil {
		p.trouble = err
		return
	}
	defer src.Close()
	p.scanSource(src, f)
}

// scanSource does so where p is open already.
func (p *piece) scanSource(src source, f func(fr *format.Frame, payload []byte)) {
	p.last, p.good, p.whole, p.frames, p.holes = format.Frame{}, 0, 0, 0, nil
	p.size = src.Size()
	r := reader{src: src, size: p.size}
	at := int64(format.HeaderSize)
	if !p.valid || p.copied {
		at = 0
	}
	for at < r.size {
		from := at
		fr, payload, ok := p.frameAt(&r, at)
		if !ok {
			if at, fr, payload, ok = p.search(&r, at); !ok {
				break
			}
		}
		if gap := int64(fr.Seq - p.last.Seq - 1); gap > 0 || at > from {
			p.holes = append(p.holes, hole{from, at, gap})
		}
		at += int64(format.FrameSize + fr.Length)
		p.frames++
		p.last, p.good = fr, at
		if fr.Flags&format.Whole != 0 {
			p.whole = at
		}
		if f != nil {
			f(&fr, payload)
		}
	}
	if p.trouble == nil {
		p.trouble = r.err
	}
}

// frameAt reads the frame at offset at.
func (p *piece) frameAt(r *reader, at int64) (fr format.Frame, payload []byte, ok bool) {
	b := r.bytes(at, format.FrameSize)
	if fr, ok = format.ReadFrame(b); !ok || fr.File != p.number || fr.Seq <= p.last.Seq {
		return fr, nil, false
	}
	size := format.FrameSize + fr.Length
	if int64(size) > r.size-at { // before there is memory for it
		return fr, nil, false
	}
	if b = r.bytes(at, size); len(b) < size {
		return fr, nil, false
	}
	payload = b[format.FrameSize:]
	ok = fr.Fits(payload)
	return fr, payload, ok
}

// search looks for the next frame behind offset at, where there is none.
func (p *piece) search(r *reader, at int64) (found int64, fr format.Frame, payload []byte, ok bool) {
	for at < r.size {
		b := r.bytes(at, 64<<10)
		next := format.Next(b)
		switch {
		case next >= 0:
			at += int64(next)
			if fr, payload, ok = p.frameAt(r, at); ok {
				return at, fr, payload, true
			}
		case len(b) < 64<<10:
			return 0, fr, nil, false
		default:
			at += int64(len(b)) - 8 // the magic may lie across the edge
		}
	}
	return 0, fr, nil, false
}

// reader reads a file from its beginning to its end in large parts. Where the system cannot
// read a page, it returns zeros: what comes behind the page may be sound.
type reader struct {
	src  source
	size int64 // less when mostBad pages could not be read
	buf  []byte
	from int64 // the offset of buf
	bad  int   // pages
	err  error // of the first of them
}

const (
	page    = 4 << 10
	mostBad = 100 // a disk that fails for good takes seconds for each
)

// bytes returns n bytes from offset at on, or fewer at the end of the file. They are
// good until the next call.
func (r *reader) bytes(at int64, n int) []byte {
	end := min(at+int64(n), r.size)
	if at < r.from || end > r.from+int64(len(r.buf)) {
		r.fill(at, int(end-at))
	}
	if end = min(end, r.from+int64(len(r.buf))); at >= end {
		return nil
	}
	return r.buf[at-r.from : end-r.from]
}

// fill reads the bytes from at on, at least n of them.
func (r *reader) fill(at int64, n int) {
	const often = 4 << 20
	want := int(min(int64(max(n, often)), r.size-at))
	if cap(r.buf) < want {
		r.buf = make([]byte, want)
	}
	r.buf, r.from = r.buf[:want], at
	for got := 0; got < want; {
		n, err := r.src.ReadAt(r.buf[got:], at+int64(got))
		got += n
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			if r.bad++; r.err == nil {
				r.err = err
			}
			if r.bad < mostBad {
				behind := min(want, got+page-int(at+int64(got))%page)
				clear(r.buf[got:behind])
				got = behind
				continue
			}
		}
		r.buf, r.size = r.buf[:got], at+int64(got)
		return
	}
}
