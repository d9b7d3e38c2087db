package datadir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/datadir/internal/format"
)

// Files are named by their numbers, so that their names sort by age. A file with a damaged
// part is renamed and kept when it is no longer needed.
// Files of a backup have the suffix incomplete until all are copied.
const (
	suffix     = ".log"
	damaged    = ".damaged"
	incomplete = ".incomplete"
)

func nameOf(number uint64) string { return fmt.Sprintf("%010d%s", number, suffix) }

// numberOf returns the number in the name of a file, and false for other names.
func numberOf(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
	return number, err == nil && number > 0 && name == nameOf(number)
}

// segment is one file of a directory, as a scan finds it.
type segment struct {
	name   string
	number uint64
	header format.Header
	valid  bool // the header is known
	copied bool // the header is damaged, and known from one of its copies
	size   int64

	// What a scan found:
	first   int64 // the wall clock of the first frame
	last    format.Frame
	good    int64 // the end of the last frame
	whole   int64 // the end of the last frame with the flag Whole; 0: none
	frames  int64 // read
	gaps    []gap // bytes between frames that are not a frame
	trouble error // the first error of the system with the file
}

// gap is a part of a file that is not a frame, and the number of frames that are missing
// there. A gap has no bytes if a part of the file was cut out.
type gap struct{ from, to, lost int64 }

// damaged reports whether a part of p that other frames follow could not be read, or
// the system failed to read p. A file that ends with its header is not damaged: the
// header is synced before a frame is written.
func (p *segment) damaged() bool {
	return len(p.gaps) > 0 || p.trouble != nil || !p.valid && p.size > format.HeaderSize
}

// torn returns how many bytes at the end of p are not a frame.
func (p *segment) torn() int64 { return p.size - max(p.good, min(p.size, format.HeaderSize)) }

// list returns the files of d, the oldest first, with their headers. The error is one of
// the directory, that of an incomplete backup, or a [*format.NewerError] in a text that names the file.
func list(d disk) ([]*segment, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	var segments []*segment
	for _, name := range names {
		number, ok := numberOf(name)
		if _, begun := numberOf(strings.TrimSuffix(name, incomplete)); begun && !ok {
			return nil, fmt.Errorf("%s is of a backup that did not finish; make another one", name)
		}
		if !ok {
			continue
		}
		p := &segment{name: name, number: number}
		segments = append(segments, p)
		src, err := d.open(name)
		if err != nil {
			p.trouble = err
			continue
		}
		if err := errors.Join(p.readHeader(src), src.Close()); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(segments, func(p, q *segment) int { return cmp.Compare(p.number, q.number) })
	refuseForeign(segments)
	return segments, nil
}

// errForeign is the error of a file with another secret than the newest one.
var errForeign = errors.New("it is a file of another directory, because its secret is not that of the newest file")

// refuseForeign makes files whose secret is not that of the newest one damaged: their keys would
// never be found.
func refuseForeign(segments []*segment) {
	var newest *segment
	for _, p := range slices.Backward(segments) {
		switch {
		case !p.valid:
		case newest == nil:
			newest = p
		case p.header.Secret != newest.header.Secret:
			p.valid, p.trouble = false, errForeign
		}
	}
}

// readHeader reads the header of p, or its copy in a frame. Its error is one of a later
// version.
func (p *segment) readHeader(src source) error {
	p.size = src.Size()
	r := reader{src: src, size: p.size}
	b := r.bytes(0, format.HeaderSize)
	h, err := format.ReadHeader(b)
	var newer *format.NewerError
	if errors.As(err, &newer) {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.header, p.valid = h, err == nil && h.File == p.number
	p.copied = p.valid && !bytes.Equal(b[:len(b)/2], b[len(b)/2:])
	if !p.valid && p.size > format.HeaderSize {
		p.scanSource(src, func(fr *format.Frame, payload []byte) {
			_ = format.Read(payload, fr.Base, &format.Visitor{Header: func(h format.Header) {
				p.header, p.valid, p.copied = h, true, true
			}})
		})
		if !p.valid {
			p.gaps = nil // the whole file is lost, not parts of it
		}
	}
	return nil
}

// scan calls f for each frame of p, in order, with its payload, which f must not keep.
func (p *segment) scan(d disk, f func(fr *format.Frame, payload []byte)) {
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

// scanSource is scan for a segment that is already open as src.
func (p *segment) scanSource(src source, f func(fr *format.Frame, payload []byte)) {
	p.last, p.good, p.whole, p.frames, p.gaps = format.Frame{}, 0, 0, 0, nil
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
		if lost := int64(fr.Seq - p.last.Seq - 1); lost > 0 || at > from {
			p.gaps = append(p.gaps, gap{from, at, lost})
		}
		at += int64(format.FrameSize + fr.Length)
		if p.frames++; p.frames == 1 {
			p.first = fr.Wall
		}
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
func (p *segment) frameAt(r *reader, at int64) (fr format.Frame, payload []byte, ok bool) {
	b := r.bytes(at, format.FrameSize)
	if fr, ok = format.ReadFrame(b); !ok || fr.File != p.number || fr.Seq <= p.last.Seq {
		return fr, nil, false
	}
	size := format.FrameSize + fr.Length
	if int64(size) > r.size-at { // before memory is allocated for it
		return fr, nil, false
	}
	if b = r.bytes(at, size); len(b) < size {
		return fr, nil, false
	}
	payload = b[format.FrameSize:]
	ok = fr.Fits(payload)
	return fr, payload, ok
}

// search searches for the next frame after offset at, where there is none.
func (p *segment) search(r *reader, at int64) (found int64, fr format.Frame, payload []byte, ok bool) {
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

// reader reads a file from its beginning to its end in large parts. It returns zeros for a page
// that the system cannot read, because what follows the page may be intact.
type reader struct {
	src  source
	size int64 // less once maxBad pages could not be read
	buf  []byte
	from int64 // the offset of buf
	bad  int   // pages that could not be read
	err  error // of the first of them
}

const (
	page   = 4 << 10
	maxBad = 100 // a broken disk takes seconds for each
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
			if r.bad < maxBad {
				next := min(want, got+page-int((at+int64(got))%page))
				clear(r.buf[got:next])
				got = next
				continue
			}
		}
		r.buf, r.size = r.buf[:got], at+int64(got)
		return
	}
}
