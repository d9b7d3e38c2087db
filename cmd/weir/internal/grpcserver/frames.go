package grpcserver

import "encoding/binary"

// frame is the head of a frame of HTTP/2.
type frame struct {
	length      int
	kind, flags byte
	stream      uint32
}

// Types of frames.
const (
	dataFrame    = 0
	headersFrame = 1
	resetFrame   = 3
)

// endStream is the flag of the last frame of a call.
const endStream = 1

// frames finds the heads of frames in what one side sends.
type frames struct {
	skip int     // bytes before the next head
	data bool    // they are data
	head [9]byte // of a frame
	have int     // bytes of head
}

// scan calls each for every frame whose head ends in p. It returns how many bytes of p are
// the data of calls.
func (f *frames) scan(p []byte, each func(frame)) (data int64) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			if f.data {
				data += int64(n)
			}
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		n := copy(f.head[f.have:], p)
		p = p[n:]
		if f.have += n; f.have < len(f.head) {
			continue
		}
		one := frame{
			length: int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2]), kind: f.head[3], flags: f.head[4],
			stream: binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31), // the first bit has no meaning
		}
		f.have, f.skip, f.data = 0, one.length, one.kind == dataFrame
		each(one)
	}
	return data
}
