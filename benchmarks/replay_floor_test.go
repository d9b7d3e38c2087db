package main

import (
	"io"
	"strings"
	"testing"

	logs "github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rulefile"
)

// The floor of the section replay decides as weir replay does.
func TestReplayFloor(t *testing.T) {
	t.Parallel()
	file, err := rulefile.Load("../examples/wordpress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := accessLog(100_000)
	log := logs.Log{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	want, err := logs.Run(t.Context(), file.Set, []logs.Log{log})
	if err != nil || want.Bad > 0 || want.Denied == 0 {
		t.Fatalf("got %d bad lines, %d denied, error %v", want.Bad, want.Denied, err)
	}
	if got, err := runFloor(strings.NewReader(text)); err != nil || int64(got) != want.Denied {
		t.Errorf("got %d denied, error %v, want %d", got, err, want.Denied)
	}
}
