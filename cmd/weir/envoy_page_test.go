package main

import (
	"regexp"
	"strings"
	"testing"
)

// Every weir command of docs/guides/envoy.md is one that weir has, with the flags that it
// has. The calls of the page are made elsewhere.
func TestEnvoyPage(t *testing.T) {
	t.Parallel()
	src := readFile(t, "../../docs/guides/envoy.md")
	found := 0
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindAllStringSubmatch(src, -1) {
		for line := range strings.Lines(m[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " >")
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "weir" {
				continue
			}
			found++
			cmd, args, err := newRoot().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if found != 4 {
		t.Errorf("got %d commands, want 4", found)
	}
}
