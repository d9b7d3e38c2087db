package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// TestFile reads a log that is plain, or packed in different ways.
func TestFile(t *testing.T) {
	t.Parallel()
	const text = "{\"ts\": 1, \"a\": \"x\"}\n{\"ts\": 2, \"a\": \"y\"}\n"
	pack := func(w io.WriteCloser, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var zst, gz bytes.Buffer
	pack(zstd.NewWriter(&zst))
	pack(gzip.NewWriter(&gz), nil)
	format, err := logs.Spec{Format: "json"}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": []byte(text), "zst": zst.Bytes(), "gz": gz.Bytes(), "two": append(zst.Bytes(), zst.Bytes()...)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		total := 0
		log := replay.File(path, nil, func(n int) { total += n })
		count := 0
		r, err := replay.Logs{Files: []replay.Log{log}, Format: format}.Open(t.Context(), []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		e := replay.Entry{Values: make([]string, 1)}
		for ; err == nil; count++ {
			err = r.Next(&e)
		}
		if !errors.Is(err, io.EOF) || count != 3 && name != "two" || name == "two" && count != 5 {
			t.Errorf("%s: got %d requests, error %v", name, count-1, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if total != len(data) {
			t.Errorf("%s: told of %d bytes, want %d", name, total, len(data))
		}
	}
	broken := replay.File("-", bytes.NewReader(zst.Bytes()[:zst.Len()-5]), nil)
	r, err := replay.Logs{Files: []replay.Log{broken}, Format: format}.Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for err == nil {
		err = r.Next(&replay.Entry{})
	}
	if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "stdin") {
		t.Errorf("got %v, want an error with the log's name", err)
	}
}
