package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main, "ratelimit": main, "holder": holder, "crowd": crowd, "attackers": attackers})
}

// TestScripts runs the program as its users do. The scripts in testdata/script
// read like a manual.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WEIR_ADDR", "127.0.0.1:1") // no service listens there
			e.Values[running{}] = new(func())
			e.Setenv("GORACE", "atexit_sleep_ms=0") // without it each process takes a second to end
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":    serve,
			"shutdown": shutdown,
			"status":   status,
			"receipt":  keepReceipt,
			// token FILE sets WEIR_TOKEN to the text of a file.
			"token": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv("WEIR_TOKEN", strings.TrimSpace(ts.ReadFile(args[0])))
			},
		},
	})
}

// TestScriptsAreWhole checks that no script ends early as passed, by a command that the runner has itself.
func TestScriptsAreWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("got %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		text := readFile(t, file)
		script, _, _ := strings.Cut(text, "\n-- ")
		for line := range strings.Lines(script) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "stop" || word == "skip" {
				t.Errorf("%s: %q ends the script", file, line)
			}
		}
	}
}

// TestRedisScripts runs scripts with a Redis server, whose URL is $STORE.
func TestRedisScripts(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/redis",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values[running{}] = new(func())
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("ADDR", n.Addr())
			e.Setenv("STORE", "redis://"+n.Addr()+"?timeout=10s")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":    serve,
			"shutdown": shutdown,
			"status":   status,
			// restrict USER RIGHT makes a user that lacks a right.
			"restrict": func(_ *testscript.TestScript, _ bool, args []string) {
				n.Must("ACL", "SETUSER", args[0], "on", ">secret", "~fit:*", "+@all", args[1])
			},
			// inspect [FLAG] runs weir inspect for the only counter in Redis. The journal of denials,
			// which is written in the background, may be there, too.
			"inspect": func(ts *testscript.TestScript, _ bool, flags []string) {
				keys := n.Must("KEYS", "weir:{*").([]any)
				if len(keys) != 1 {
					ts.Fatalf("got keys %v, want one", keys)
				}
				ts.Check(ts.Exec("weir", append([]string{"inspect", "--store", ts.Getenv("STORE"), keys[0].(string)}, flags...)...))
			},
		},
	})
}

var addresses = regexp.MustCompile(`weir listens on (\S+), its admin on (\S+)`)

// serve [--tokens FILE] [--listen ADDRESS] [--data DIRECTORY] [--log-keys FORM] [RULES
// [STORE]] runs a service on free ports until the script ends, or until the command
// shutdown, and points WEIR_ADDR at it.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	for len(args) > 1 && strings.HasPrefix(args[0], "--") {
		switch args[0] {
		case "--tokens":
			cfg.Access.Tokens = ts.MkAbs(args[1])
		case "--listen":
			cfg.Listen = args[1]
		case "--data":
			cfg.Data = ts.MkAbs(args[1])
		case "--log-keys":
			if cfg.LogKeys = args[1]; cfg.LogKeys == "hashed" {
				cfg.LogKeysSecret = "secret"
			}
		}
		args = args[2:]
	}
	if len(args) > 0 {
		cfg.Rules = ts.MkAbs(args[0])
	}
	if len(args) > 1 {
		cfg.Store, cfg.Nodes = args[1], 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := server.Run(ctx, cfg, in, io.Discard)
		in.Close()
		ended <- err
	}()
	r := bufio.NewReader(out)
	first, _ := r.ReadString('\n')
	m := addresses.FindStringSubmatch(first)
	if m == nil {
		ts.Fatalf("the service greets with %q and ends with %v", first, <-ended)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	// A data directory is loaded, and a store connected.
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		resp, err := http.Get(m[2] + "/readyz")
		if err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK {
			break
		}
		if time.Since(began) > time.Minute {
			ts.Fatalf("the service is not ready after a minute: %v", err)
		}
	}
	ts.Setenv("WEIR_ADDR", m[1])
	ts.Setenv("WEIR_ADMIN", m[2])
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			ts.Logf("the service ends with %v", err)
		}
	})
	*ts.Value(running{}).(*func()) = end
	ts.Defer(end)
}

// running is the key of what ends the service that was started last.
type running struct{}

// shutdown ends the service that was started last, in order. It is not called stop, which in scripts ends the
// script as passed.
func shutdown(ts *testscript.TestScript, _ bool, _ []string) { (*ts.Value(running{}).(*func()))() }

var receipts = regexp.MustCompile(`(?m)^receipt: (\S+)$`)

// receipt sets RECEIPT to what the last command has printed.
func keepReceipt(ts *testscript.TestScript, _ bool, _ []string) {
	m := receipts.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("the last command printed no receipt")
	}
	ts.Setenv("RECEIPT", m[1])
}

// status N COMMAND… runs a command, which must exit with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("got exit status %d, want %s", got, want)
	}
}

// readFile returns the text of a file.
func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeFile writes a file that only its owner can read, and returns its path.
func writeFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
