package format_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/datadir/internal/format"
)

// entry is what a payload has, in the order of a reader.
type entry struct {
	id    format.SpaceID
	key   uint64
	state []uint64
}

// readAll reads a payload.
func readAll(payload []byte, base int64) (entries []entry, spaces []format.Space, blobs map[string]string, err error) {
	blobs = map[string]string{}
	var of format.SpaceID
	err = format.Read(payload, base, &format.Visitor{
		Space: func(_ format.SpaceID, s format.Space) { spaces = append(spaces, s) },
		Keys:  func(id format.SpaceID) bool { of = id; return true },
		Key:   func(key uint64, state []uint64) { entries = append(entries, entry{of, key, slices.Clone(state)}) },
		Blob:  func(name string, data []byte) { blobs[name] = string(data) },
	})
	return entries, spaces, blobs, err
}

// Any words are read as they were written, relative to any base.
func FuzzKeys(f *testing.F) {
	f.Add(int64(1<<50), uint64(7), []byte("a state of some words, of which the last is a part"))
	f.Add(int64(-1), uint64(0), bytes.Repeat([]byte{255}, 64))
	f.Add(int64(1<<62), uint64(1)<<63, []byte{})
	f.Fuzz(func(t *testing.T, base int64, key uint64, data []byte) {
		var words []uint64
		for ; len(data) >= 8; data = data[8:] {
			words = append(words, binary.LittleEndian.Uint64(data))
		}
		if len(words) > 1 {
			words[1] = uint64(base) + words[0]%1000 // near the base
		}
		b, at := format.BeginKeys([]byte("before"))
		b = format.AppendKey(b, base, key, words)
		b = format.AppendKey(b, base, ^key, nil)
		b = format.EndKeys(b, at, 99)
		got, _, _, err := readAll(b[len("before"):], base)
		if err != nil {
			t.Fatal(err)
		}
		want := []entry{{99, key, words}, {99, ^key, nil}}
		for i := range want {
			if got[i].id != want[i].id || got[i].key != want[i].key || !slices.Equal(got[i].state, want[i].state) {
				t.Errorf("got %v, want %v", got[i], want[i])
			}
		}
	})
}

// Garbage is read without a panic, and in a time that its length bounds.
func FuzzRead(f *testing.F) {
	b, at := format.BeginKeys(nil)
	b = format.AppendKey(b, 5, 1, []uint64{1 << 50, 3})
	b = format.EndKeys(b, at, 7)
	b = format.AppendSpace(b, &format.Space{Namespace: "n", ID: "i", Name: "m", MaxKeys: 9, Limit: []byte("{}")})
	b = format.AppendHeaderCopy(b, &format.Header{File: 3})
	f.Add(format.AppendBlob(b, "note", []byte("data")), int64(3))
	f.Fuzz(func(t *testing.T, payload []byte, base int64) {
		entries, _, _, _ := readAll(payload, base)
		words := 0
		for _, e := range entries {
			words += len(e.state)
		}
		if words > len(payload) || len(entries) > len(payload)/9 {
			t.Errorf("got %d words of %d keys from %d bytes", words, len(entries), len(payload))
		}
	})
}

func TestPayload(t *testing.T) {
	t.Parallel()
	b, at := format.BeginKeys(nil)
	b = format.EndKeys(b, at, 7) // without keys: nothing
	if len(b) != 0 {
		t.Errorf("a section without keys: got %d bytes, want none", len(b))
	}
	space := format.Space{Namespace: "tenant", ID: "i\x00d", Name: "posts", MaxKeys: -1, Limit: []byte("limit")}
	b, at = format.BeginKeys(b)
	b = format.AppendKey(b, 0, 1, []uint64{1})
	b = format.EndKeys(b, at, format.IDOf("tenant", "i\x00d"))
	b = format.AppendBlob(b, "a", []byte("x"))
	b = format.AppendBlob(b, "b", nil)
	b = format.AppendSpace(b, &space)
	header := format.Header{Version: format.Version, File: 7, Secret: [32]byte{1, 31: 2}}
	b = format.AppendHeaderCopy(b, &header)
	copied := format.Header{}
	if err := format.Read(b, 0, &format.Visitor{Header: func(h format.Header) { copied = h }}); err != nil || copied != header {
		t.Errorf("got header %+v, error %v, want %+v", copied, err, header)
	}
	entries, spaces, blobs, err := readAll(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].id != format.IDOf("tenant", "i\x00d") {
		t.Errorf("got %v", entries)
	}
	if len(spaces) != 1 || !reflect.DeepEqual(spaces[0], space) {
		t.Errorf("got %v, want %v", spaces, space)
	}
	if fmt.Sprint(blobs) != fmt.Sprint(map[string]string{"a": "x", "b": ""}) {
		t.Errorf("got %v", blobs)
	}
	if format.IDOf("a", "bc") == format.IDOf("ab", "c") {
		t.Error("two spaces have one ID")
	}
}

// A frame is found behind any bytes, and no damaged one is taken for one.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("payload"), uint64(3), uint64(9), uint16(100))
	f.Add([]byte{}, uint64(0), uint64(1), uint16(2))
	f.Fuzz(func(t *testing.T, payload []byte, file, seq uint64, at uint16) {
		b := append(make([]byte, format.FrameSize), payload...)
		in := format.Frame{Flags: format.Whole, File: file, Seq: seq, Steady: -5, Wall: 1 << 60, Uptime: 7, Boot: 8, Base: -9, SteadyFloor: 3, WallFloor: 4}
		format.Seal(b, &in)
		out, ok := format.ReadFrame(b)
		if !ok || out != in || !out.Fits(b[format.FrameSize:]) {
			t.Fatalf("got %+v (%v), want %+v", out, ok, in)
		}
		i := int(at) % len(b)
		b[i] ^= 1 << (at % 8)
		if out, ok := format.ReadFrame(b); ok && out.Fits(b[format.FrameSize:]) {
			t.Errorf("flipped at %d: got a frame", i)
		}
		b[i] ^= 1 << (at % 8)
		behind := append(bytes.Repeat([]byte("w"), int(at)%50+1), b...)
		for from := 0; ; {
			next := format.Next(behind[from:])
			if next < 0 {
				t.Fatal("the frame was not found")
			}
			if from += next; from == int(at)%50+1 {
				break
			}
		}
	})
}

func TestHeader(t *testing.T) {
	t.Parallel()
	in := format.Header{Version: format.Version, File: 7, Secret: [32]byte{1, 31: 2}, Receipts: [2][16]byte{{3, 15: 4}, {5, 15: 6}}, Until: 7}
	b := format.AppendHeader(nil, &in)
	if len(b) != format.HeaderSize {
		t.Fatalf("got %d bytes, want %d", len(b), format.HeaderSize)
	}
	for i := range b { // either copy is enough
		b[i] ^= 255
		if out, err := format.ReadHeader(b); err != nil || out != in {
			t.Errorf("flipped at %d: got %+v, %v", i, out, err)
		}
		b[i] ^= 255
	}
	for n := range format.HeaderSize / 2 {
		if _, err := format.ReadHeader(b[:n]); !errors.Is(err, format.ErrHeader) {
			t.Errorf("%d bytes: got error %v, want %v", n, err, format.ErrHeader)
		}
	}
}
