package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// inOrder reports whether text has first and, after it, then.
func inOrder(text, first, then string) bool {
	_, rest, found := strings.Cut(text, first)
	return found && strings.Contains(rest, then)
}

// The receiver on the page about events checks signatures, and prints each event once.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("python3 is not installed: %v", err)
	}
	page := readFile(t, "../../docs/guides/events.md")
	blocks := regexp.MustCompile("(?s)```(yaml|python)\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("got %d blocks, want the file with webhooks and the receiver", len(blocks))
	}
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	file := filepath.Join(dir, "webhooks.yaml")
	for name, text := range map[string]string{
		"webhooks.yaml":  strings.Replace(blocks[0][2], "https://billing.example.com", "http://"+addr, 1),
		"billing.secret": webhookSecret,
		"receiver.py":    blocks[1][2],
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	var printed lockedBuffer
	receiver := exec.Command(python, filepath.Join(dir, "receiver.py"))
	receiver.Env = append(os.Environ(), "PORT="+port, "SECRET="+webhookSecret)
	receiver.Stdout, receiver.Stderr = &printed, &printed
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait() })
	redistest.Eventually(t, "the receiver listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	resp, err := http.Post("http://"+addr, "application/json", strings.NewReader("{}"))
	if err == nil {
		_ = resp.Body.Close()
	}
	p := startProcess(t, "", "rules:\n  - name: posts\n    per: [user]\n    limit: 5\n    window: 1h\n", "--webhooks", file)

	// The command prints the same events.
	ctx, stop := context.WithCancel(t.Context())
	var out lockedBuffer
	command := exec.CommandContext(ctx, "weir", "events", "--kind", "near,denied", "--addr", p.api)
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = command.Wait() }()
	n := 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("receiver: %s\ncommand: %s\nservice: %s", printed.String(), out.String(), p.logs.String())
		}
	})
	redistest.Eventually(t, "events arrive", func() bool {
		n++ // the command may not listen yet
		for range 6 {
			resp, err := http.Post(p.api+"/v1/take", "application/json", bytes.NewReader([]byte(`{"attributes":{"user":"ann`+strings.Repeat("x", n)+`"}}`)))
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
		}
		return inOrder(printed.String(), "weir.near annx\n", "weir.denied annx\n") && strings.Contains(out.String(), `"type":"weir.denied"`)
	})
}

// Wherever a stream breaks, the next one, after the last event that was whole, has the rest: no event is missing or
// printed twice. The id before the first event is a place, too.
func TestPrintEventsOfBrokenStreams(t *testing.T) {
	t.Parallel()
	event := func(id string) string { return "id: " + id + "\nevent: denied\ndata: {\"id\":\"" + id + "\"}\n\n" }
	rest := map[string]string{
		"":  event("1") + event("2"), // the stream has begun anew, and does not know what was before
		"0": event("1") + ":\n\n" + event("2"),
		"1": event("2"),
		"2": "",
	}
	whole := ": weir\nid: 0\n\n" + rest["0"]
	for n := range len(whole) {
		var out, errs bytes.Buffer
		last, _ := printEvents(strings.NewReader(whole[:n]), "", &out, &errs)
		last, err := printEvents(strings.NewReader(rest[last]), last, &out, &errs)
		if want := "{\"id\":\"1\"}\n{\"id\":\"2\"}\n"; out.String() != want || last != "2" || errs.Len() > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("cut after %d bytes: got %s%s and id %s, want both events once", n, &out, &errs, last)
		}
	}
}
