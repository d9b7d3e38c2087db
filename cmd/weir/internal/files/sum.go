package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Sum is the hash of a rules file and of its lists: what /v1/rules, metrics and reports show. Make one with [NewSum].
type Sum struct {
	hash hash.Hash
	slow error // of a file system that does not answer
}

// NewSum returns the hash of a rules file whose content is src.
func NewSum(src []byte) *Sum {
	s := &Sum{hash: sha256.New()}
	s.hash.Write(src)
	return s
}

// Read returns the content of a list, and adds it to s.
func (s *Sum) Read(list string) ([]byte, error) {
	b, err := []byte(nil), s.slow
	if err == nil {
		b, err = List(list)
	}
	if errors.Is(err, ErrSlow) {
		s.slow = err // the next list would take as long
	}
	s.Add(b, err)
	return b, err
}

// Add adds what reading a file has given.
func (s *Sum) Add(b []byte, err error) {
	fmt.Fprintf(s.hash, "\n%t %d\n", err == nil, len(b)) // a value that moves to the next list is a change
	s.hash.Write(b)
}

// Name adds the name of a file.
func (s *Sum) Name(name string) { _, _ = io.WriteString(s.hash, name) }

// Text returns the hash in hexadecimal digits.
func (s *Sum) Text() string { return hex.EncodeToString(s.hash.Sum(nil)) }
