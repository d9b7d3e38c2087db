package server_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

// TestClients runs the programs in PHP, Python and JavaScript, and compares what
// they print with the page.
func TestClients(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../../../docs/guides/clients.md")
	s := start(t, withRules(rulesFile(t, blocks[0].text), false))
	for i, b := range blocks {
		if interpreters[b.language] == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d", b.language, i), func(t *testing.T) {
			t.Parallel()
			got, err := interpret(t, b, s.api)
			want := blocks[i+1].text
			if err != nil || soon.ReplaceAllString(got, "wait an hour") != soon.ReplaceAllString(want, "wait an hour") {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// soon matches a wait of an hour, also one that is some minutes shorter because the
// machine is slow.
var soon = regexp.MustCompile(`wait 3[0-6]\d\d s`)

// TestClientsAndProblems runs the programs without a client against a service that
// cannot decide, which lets the action happen, and against one that finds a mistake in
// the call, which is an error.
func TestClientsAndProblems(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"title": "a problem", "status": %d, "detail": "the detail"}`, status)
		}))
		t.Cleanup(service.Close)
		programs := 0
		for _, b := range read(t, "../../../../docs/guides/clients.md") {
			if interpreters[b.language] == nil || strings.Contains(b.text, "import weir") {
				continue
			}
			programs++
			t.Run(fmt.Sprintf("%s/%d", b.language, status), func(t *testing.T) {
				t.Parallel()
				got, err := interpret(t, b, service.URL)
				switch {
				case status >= http.StatusInternalServerError && (err != nil || got != "posted\nposted\nposted\n"):
					t.Errorf("got %v\n%s\nwant three posts", err, got)
				case status < http.StatusInternalServerError && (err == nil || strings.Contains(got, "posted")):
					t.Errorf("got %v\n%s\nwant an error", err, got)
				}
			})
		}
		if programs != 3 {
			t.Errorf("got %d programs, want those of the page", programs)
		}
	}
}

// TestClientsAndBrokenAnswers runs the programs without a client against a service whose answers are cut, or are not
// those of weir. The programs let the action happen.
func TestClientsAndBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no answer":       "",
		"a part of it":    "HTTP/1.1 200 OK\r\nContent-Le",
		"a part of JSON":  "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"allowed\": fal",
		"something else":  "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
		"another's fault": "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>",
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}))
		t.Cleanup(service.Close)
		for _, b := range read(t, "../../../../docs/guides/clients.md") {
			if interpreters[b.language] == nil || strings.Contains(b.text, "import weir") {
				continue
			}
			t.Run(b.language+"/"+name, func(t *testing.T) {
				t.Parallel()
				if got, err := interpret(t, b, service.URL); err != nil || got != "posted\nposted\nposted\n" {
					t.Errorf("got %v\n%s\nwant three posts", err, got)
				}
			})
		}
	}
}

// TestClientsAndLongValues runs the programs without a client with a value that weir might not answer. It is an error,
// so that those whom the programs limit cannot cause an outage.
func TestClientsAndLongValues(t *testing.T) {
	t.Parallel()
	long := strings.NewReplacer("'php'", "str_repeat('x', 1 << 20)", `"python"`, `"x" * (1 << 20)`, "'js'", "'x'.repeat(1 << 20)")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(service.Close)
	for _, b := range read(t, "../../../../docs/guides/clients.md") {
		if interpreters[b.language] == nil || strings.Contains(b.text, "import weir") {
			continue
		}
		t.Run(b.language, func(t *testing.T) {
			t.Parallel()
			b.text = long.Replace(b.text)
			if got, err := interpret(t, b, service.URL); err == nil || !strings.Contains(got, "too long") || strings.Contains(got, "posted") {
				t.Errorf("got %v\n%.1000s\nwant an error", err, got)
			}
		})
	}
}

// TestPythonClientSettings makes the client that the page shows for a service with
// tokens and TLS.
func TestPythonClientSettings(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile("(?s)`(weir\\.Client\\(.*?\\))`").FindStringSubmatch(readFile(t, "../../../../docs/guides/clients.md"))
	if made == nil {
		t.Fatal("the page does not show the settings of a client")
	}
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"allowed": true, "outcome": "%s %s", "limits": []}`, r.Header.Get("Authorization"), r.Header.Get("Weir-Namespace"))
	}))
	defer service.Close()
	cert := filepath.Join(t.TempDir(), "cert.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})))
	made[1] = strings.NewReplacer("https://weir.example:8443", service.URL, "cert.pem", cert, "token=token", `token=token, timeout=60`).Replace(made[1])
	program := "import ssl, weir\ntoken = 'secret'\nprint(" + made[1] + ".take({}).outcome)\n"
	got, err := interpret(t, fence{"python", program}, service.URL)
	if err != nil || got != "Bearer secret shop\n" {
		t.Errorf("got %v\n%s", err, got)
	}
}

var interpreters = map[string][]string{"php": {"php"}, "python": {"python3", "-"}, "js": {"node", "-"}}

// interpret runs a program of the page against the service at url, and returns what
// it prints.
func interpret(t *testing.T, program fence, url string) (string, error) {
	t.Helper()
	args := interpreters[program.language]
	cmd := exec.CommandContext(t.Context(), needtest.Program(t, args[0]), args[1:]...)
	// A crowded machine is not an outage.
	text := strings.NewReplacer("http://localhost:8080", url, "timeout=0.5", "timeout=60", "'timeout' => 0.5", "'timeout' => 60", "timeout(500)", "timeout(60000)")
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../../../clients/python", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = strings.NewReader(text.Replace(program.text))
	got, err := cmd.CombinedOutput()
	return string(got), err
}
