package top_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/top"
)

// FuzzSketch holds a sketch to exact counts: every count is within its error, no
// key is missing that has more than Min, and Min is at most N/k.
func FuzzSketch(f *testing.F) {
	f.Add(uint8(3), []byte("\x01\x05\x02\x05\x03\x05\x04\x01\x05\x01\x01\x09"))
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.2, 1, 255)
	for k := range uint8(20) {
		var stream []byte
		for range 400 {
			stream = append(stream, byte(zipf.Uint64()), byte(r.IntN(7)))
		}
		f.Add(k, stream)
	}
	f.Fuzz(func(t *testing.T, k uint8, stream []byte) {
		s := top.NewSketch(int(k))
		room := max(int64(k), 1)
		exact, total := map[string]int64{}, int64(0)
		for ; len(stream) >= 2; stream = stream[2:] {
			key, n := string(stream[:1]), int64(stream[1])+1
			if got := s.Add([]byte(key), n); got != key {
				t.Fatalf("Add(%q): got key %q", key, got)
			}
			exact[key] += n
			total += n
			check(t, s, exact, total, room)
		}
		s.Reset(2)
		if s.Len() != 0 || s.Total() != 0 || s.Min() != 0 || s.Of("\x01") != (top.Entry{Key: "\x01"}) {
			t.Errorf("after a reset: got %d keys, %d in all, least %d", s.Len(), s.Total(), s.Min())
		}
	})
}

// check compares s with the exact counts.
func check(t *testing.T, s *top.Sketch, exact map[string]int64, total, k int64) {
	t.Helper()
	if s.Total() != total {
		t.Fatalf("got %d in all, want %d", s.Total(), total)
	}
	if s.Min() > total/k {
		t.Fatalf("got a least count of %d, want at most %d/%d", s.Min(), total, k)
	}
	if want := min(int(k), len(exact)); s.Len() != want {
		t.Fatalf("got %d keys, want %d", s.Len(), want)
	}
	var sum int64
	for key, n := range exact {
		e := s.Of(key)
		if e.Count < n || e.Count-e.Error > n || e.Error > s.Min() {
			t.Fatalf("key %q: got %+v, want %d within the error, which is at most %d", key, e, n, s.Min())
		}
		if n > s.Min() && e == (top.Entry{Key: key, Count: s.Min(), Error: s.Min()}) {
			t.Fatalf("key %q with %d is missing; the least count is %d", key, n, s.Min())
		}
		if e.Error == 0 && s.Min() > 0 && e.Count != n {
			t.Fatalf("key %q: got %d without an error, want %d", key, e.Count, n)
		}
		if e.Error != s.Min() || e.Count != s.Min() {
			sum += e.Count
		}
	}
	if sum > total {
		t.Fatalf("got counts of %d in all, want at most %d", sum, total)
	}
}

// A sketch of hits that weigh too much for an int64 stays at the largest number.
func TestSketchEndsAtTheLargestNumber(t *testing.T) {
	t.Parallel()
	s := top.NewSketch(1)
	for range 3 {
		s.Add([]byte("a"), math.MaxInt64-1)
	}
	s.Add([]byte("b"), 5)
	want := top.Entry{Key: "b", Count: math.MaxInt64, Error: math.MaxInt64}
	if got := s.Of("b"); got != want || s.Total() != math.MaxInt64 {
		t.Errorf("got %+v and %d in all, want %+v", got, s.Total(), want)
	}
}

func BenchmarkSketch(b *testing.B) {
	for _, keys := range []uint64{500, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(r, 1.1, 1, keys)
			stream := make([][]byte, 1<<16)
			for i := range stream {
				stream[i] = binary.BigEndian.AppendUint64([]byte("user-"), zipf.Uint64())
			}
			s, i := top.NewSketch(1000), 0
			b.ReportAllocs()
			for b.Loop() {
				s.Add(stream[i&(1<<16-1)], 1)
				i++
			}
		})
	}
}
