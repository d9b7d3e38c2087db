package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUntrustedCertificate calls a service whose certificate no known authority has
// signed: the error says what to change, and does not doubt that a service runs.
func TestUntrustedCertificate(t *testing.T) {
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	var out, errs bytes.Buffer
	status := run([]string{"usage", "--addr", service.URL, "posts", "user=42"}, strings.NewReader(""), &out, &errs)
	got := errs.String()
	if status != 1 || !strings.Contains(got, "--ca names its authority") || strings.Contains(got, "running there") {
		t.Errorf("got status %d and %s", status, got)
	}
}

// TestPlainToTLS calls a service that speaks TLS without it: the error says what to
// write.
func TestPlainToTLS(t *testing.T) {
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	var out, errs bytes.Buffer
	url := strings.Replace(service.URL, "https://", "http://", 1)
	status := run([]string{"usage", "--addr", url, "posts", "user=42"}, strings.NewReader(""), &out, &errs)
	if got := errs.String(); status != 1 || !strings.HasSuffix(got, ": the service speaks TLS: write https://\n") {
		t.Errorf("got status %d and %s", status, got)
	}
}

// TestHostileService calls services whose answers have control sequences.
func TestHostileService(t *testing.T) {
	const control = `\u001b]0;title\u0007\u001b[2J\u009b31m`
	for name, answer := range map[string]http.HandlerFunc{
		"an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"allowed": true, "rule": "`+control+`", "outcome": "`+control+`", "receipt": "`+control+`",
				"verdicts": ["a", "`+control+`"], "triggered": ["`+control+`"], "limits": [{"rule": "`+control+`", "key": "`+control+`"}]}`)
		},
		"a problem": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"detail": "`+control+`"}`)
		},
	} {
		service := httptest.NewServer(answer)
		var out, errs bytes.Buffer
		run([]string{"take", "--addr", service.URL, "user=42"}, strings.NewReader(""), &out, &errs)
		service.Close()
		got := out.String() + errs.String()
		if strings.ContainsAny(got, "\x1b\x07\u009b") || !strings.Contains(got, "[2J") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestAnswerWithoutAnEnd(t *testing.T) {
	t.Parallel()
	if _, err := readAnswer(endless{}); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("got %v, want an error that names the most that is read", err)
	}
}

// endless is an answer that has no end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Another server that answers is not taken for the service, also by commands whose answer is empty.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	for kind, body := range map[string]string{"text/html": "", "text/html; charset=utf-8": "<html>", "application/json": "{}"} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(service.Close)
		commands := [][]string{
			{"forget", "posts", "user=42"}, {"take", "user=42"}, {"explain", "user=42"}, {"usage", "posts", "user=42"},
			{"set", "posts", "1", "user=42"}, {"unban", "posts", "user=42"}, {"denials"}, {"audit"}, {"top", "--once"},
			{"override", "list"}, {"override", "set", "posts", "user=42", "--limit", "1"},
		}
		if body != "{}" {
			commands = append(commands, []string{"events"})
		}
		for _, command := range commands {
			var out, errs bytes.Buffer
			status := run(append(command, "--addr", service.URL), strings.NewReader(""), &out, &errs)
			if status != exitError || !strings.Contains(errs.String(), "does not come from a weir service") {
				t.Errorf("%q of type %s: %q: got status %d and %q", body, kind, command, status, errs.String())
			}
		}
	}
}

// A password in --addr is shown in no error, and an argument that is not UTF-8 names no other key.
func TestArgumentsOfCalls(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusNotFound, http.StatusBadGateway} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(service.Close)
		for _, command := range [][]string{{"take", "user=42"}, {"usage", "posts", "user=42"}} {
			var out, errs bytes.Buffer
			run(append(command, "--addr", strings.Replace(service.URL, "//", "//ann:swordfish@", 1)), strings.NewReader(""), &out, &errs)
			if got := errs.String(); !strings.Contains(got, "ann:xxxxx@") || strings.Contains(got, "swordfish") {
				t.Errorf("%d: %q: got %q", status, command, got)
			}
		}
	}
	var out, errs bytes.Buffer
	if status := run([]string{"take", "user=a\xff"}, strings.NewReader(""), &out, &errs); status != exitUsage || !strings.Contains(errs.String(), `"user=a\xff" is not valid UTF-8`) {
		t.Errorf("got status %d and %q", status, errs.String())
	}
}
