package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScripts runs the program as its users do; testdata/script reads as its
// manual.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WEIR_ADDR", "127.0.0.1:1")    // nobody listens there
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each process takes a second to end
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":  serve,
			"status": status,
		},
	})
}

var addresses = regexp.MustCompile(`weir listens on (\S+), its admin on (\S+)`)

// serve [RULES] runs a service on free ports until the script ends, and points
// WEIR_ADDR at it.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	if len(args) > 0 {
		cfg.Rules = ts.MkAbs(args[0])
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
	ts.Setenv("WEIR_ADDR", m[1])
	ts.Setenv("WEIR_ADMIN", m[2])
	ts.Defer(func() {
		cancel()
		if err := <-ended; err != nil {
			ts.Logf("the service ends with %v", err)
		}
	})
}

// status N COMMAND… runs a command and asks that it exits with N.
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
