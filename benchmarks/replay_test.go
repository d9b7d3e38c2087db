package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// The baseline of the section replay decides as weir replay does.
func TestReplayBaseline(t *testing.T) {
	t.Parallel()
	s := settings{folder: t.TempDir()}
	log := s.file("access.log", accessLog(100_000))
	out, err := exec.Command(weirProgram(), "replay", "--json", "--alone=false", "--rules", "../examples/wordpress.yaml", log).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Denied json.Number }
	if err := json.Unmarshal(out, &want); err != nil || want.Denied == "" || want.Denied == "0" {
		t.Fatalf("got %s denied, error %v", want.Denied, err)
	}
	got, err := childCommand("replay", log).Output()
	if err != nil || strings.TrimSpace(string(got)) != want.Denied.String() {
		t.Errorf("got %s denied, error %v, want %s", got, err, want.Denied)
	}
}
