package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pinnedAction = regexp.MustCompile(`^\S+@[0-9a-f]{40} # v\d`)
	pinnedImage  = regexp.MustCompile(`^\S+@sha256:[0-9a-f]{64} `)
	job          = regexp.MustCompile(`(?m)^  [a-z]+:$`)
)

// Workflows and the Dockerfile name what they run by digest, because a tag can be moved.
// A job that may write to the repository runs no code of it and of its modules.
func TestPins(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("got workflows %v, %v", workflows, err)
	}
	for _, file := range workflows {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, uses, ok := strings.Cut(line, "uses: "); ok && !pinnedAction.MatchString(uses) {
				t.Errorf("%s: %s has no digest of a commit, with its version behind it", file, strings.TrimSpace(uses))
			}
		}
		top, jobs, _ := strings.Cut(string(text), "\njobs:\n")
		if !strings.Contains(top, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: want permissions: contents: read for all jobs", file)
		}
		for _, steps := range job.Split(jobs, -1) {
			for _, runs := range []string{"checkout@", "make ", "go "} {
				if strings.Contains(steps, ": write") && strings.Contains(steps, runs) {
					t.Errorf("%s: a job that may write has %q", file, runs)
				}
			}
		}
	}
	docker, err := os.ReadFile("deploy/docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(docker)) {
		if from, ok := strings.CutPrefix(line, "FROM "); ok && from != "scratch\n" && !pinnedImage.MatchString(from) {
			t.Errorf("Dockerfile: %s has no digest", strings.TrimSpace(from))
		}
	}
}
