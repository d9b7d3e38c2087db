package trial_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/trial"
)

// TestMain runs a worker if it is asked to, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == trial.Command {
		if err := trial.Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func limit(n int) string {
	return fmt.Sprintf("rules:\n  - {name: posts, per: [user], limit: %d, window: 1h}\n  - {name: all, limit: 1000, window: 1h}\n", n)
}

// posts writes a log in which user n has n requests, for n up to 20.
func posts(w io.Writer) error {
	at := int64(1777620000000000)
	for user := 1; user <= 20; user++ {
		for range user {
			at += 1000
			if _, err := fmt.Fprintf(w, `{"time":%d,"attributes":{"user":"u%d"}}`+"\n", at, user); err != nil {
				return err
			}
		}
	}
	return nil
}

func job(before, after int) *trial.Job {
	return &trial.Job{File: "rules.yaml", Before: limit(before), After: limit(after), Log: "posts", Format: json.RawMessage(`{"format":"weir"}`)}
}

// wait returns the trial when it has ended.
func wait(t *testing.T, r *trial.Runner) trial.Status {
	t.Helper()
	trial.Wait(r)
	s, _ := r.Status("default", "")
	return s
}

// result returns the result of a trial that has one.
func result(t *testing.T, s trial.Status) []byte {
	t.Helper()
	if s.Result == nil {
		t.Fatalf("got %+v, want a result", s)
	}
	text, err := io.ReadAll(s.Result)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func start(t *testing.T, r *trial.Runner, j *trial.Job, write func(io.Writer) error) {
	t.Helper()
	s, err := r.Start(trial.Status{Namespace: "default"}, "", j, func(_ context.Context, w io.Writer) error { return write(w) })
	if err != nil {
		t.Fatal(err)
	}
	if s.State != trial.Running || s.ID == "" || s.Log != "posts" {
		t.Fatalf("got %+v", s)
	}
}

// A test of a trial has the ends of the holds of its takes, and the refunds.
func TestTestsOfHolds(t *testing.T) {
	t.Parallel()
	r := trial.NewRunner(trial.Self, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	chats := func(limit int) string {
		return fmt.Sprintf("rules:\n  - {name: chats, per: [team], sum: tokens, limit: %d, window: 1h, hold: 5m, feedback: {failed: 200}}\n", limit)
	}
	j := &trial.Job{File: "rules.yaml", Before: chats(1000), After: chats(500), Log: "posts", Format: json.RawMessage(`{"format":"weir"}`)}
	start(t, r, j, func(w io.Writer) error {
		_, err := io.WriteString(w, `{"time":1777620000000000,"verb":"settle","hold":"earlier","attributes":{"team":"red","tokens":"1"}}
{"time":1777620001000000,"hold":"a","attributes":{"team":"red","tokens":"400"}}
{"time":1777620002000000,"verb":"settle","hold":"a","hits":1,"attributes":{"team":"red"}}
{"time":1777620003000000,"hold":"b","attributes":{"team":"red","tokens":"400"}}
{"time":1777620004000000,"verb":"settle","hold":"b","attributes":{"team":"red","tokens":"300"}}
{"time":1777620005000000,"verb":"refund","feedback":"failed","attributes":{"team":"red","tokens":"300"}}
{"time":1777620006000000,"hold":"c","attributes":{"team":"red","tokens":"450"}}
`)
		return err
	})
	var got trial.Result
	if err := json.Unmarshal(result(t, wait(t, r)), &got); err != nil {
		t.Fatal(err)
	}
	const steps = `      - {take: {team: red, tokens: 400}, receipt: a}
      - {at: 1s, settle: {team: red}, hits: 1, receipt: a}
      - {at: 2s, take: {team: red, tokens: 400}, receipt: b}
      - {at: 3s, settle: {team: red, tokens: 300}, receipt: b}
      - {at: 4s, refund: {team: red, tokens: 300}, feedback: failed}
      - {at: 5s, take: {team: red, tokens: 450}, receipt: c, expect: {allowed: false, rule: chats}}
`
	if c := got.Comparison; c.Requests != 3 || c.NewlyDenied != 1 || !strings.HasSuffix(got.Tests, steps) {
		t.Errorf("got %d of %d requests newly denied, and\n%s", c.NewlyDenied, c.Requests, got.Tests)
	}
}

// A trial compares as weir compare does, and measures other quotas of the limits that the change is about.
func TestTrial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := trial.NewRunner(trial.Self, dir, trial.MaxMemory)
	defer r.Close()
	start(t, r, job(15, 10), posts)
	s := wait(t, r)
	var log bytes.Buffer
	_ = posts(&log)
	if s.Error != "" || s.State != trial.Done || s.Total != 3*int64(log.Len()) || s.Bytes == 0 { // it is read for the comparison, the tests and the quotas
		t.Fatalf("got %+v", s)
	}
	var got trial.Result
	if err := json.Unmarshal(result(t, s), &got); err != nil {
		t.Fatal(err)
	}
	// Of 16, 17, … 20 requests, 15 are allowed before and 10 now; of 11 … 15 all before.
	if c := got.Comparison; c.Requests != 210 || c.NewlyDenied != 5*5+1+2+3+4+5 || c.Denials[0].Keys != 10 || c.Denials[0].Top[0].Key != "u15" {
		t.Errorf("got %+v", c)
	}
	if len(got.Suggestions) != 1 || got.Suggestions[0].Rule != "posts" || got.Quotas["posts"] != [2]int64{15, 10} {
		t.Fatalf("got %+v, %v", got.Suggestions, got.Quotas)
	}
	found := 0
	for _, c := range got.Suggestions[0].Windows[0].Candidates {
		switch c.Quota {
		case 10:
			found++
			if c.Denied != 55 || c.KeysDenied != 10 {
				t.Errorf("got %+v", c)
			}
		case 15:
			found++
			if c.Denied != 15 || c.KeysDenied != 5 {
				t.Errorf("got %+v", c)
			}
		}
	}
	if found != 2 {
		t.Errorf("got candidates %+v, want both quotas among them", got.Suggestions[0].Windows[0].Candidates)
	}
	for _, want := range []string{
		"rules: rules.yaml\n", `"posts: a request that is newly denied"`, "start: 2026-05-01T07:20:00.056Z\n", // the 11th of u11
		"- {at: 10ms, take: {user: u11}, expect: {allowed: false, rule: posts}}\n",
	} {
		if !strings.Contains(got.Tests, want) {
			t.Errorf("got the tests\n%s, want %s", got.Tests, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("got files %v, want none", left)
	}
	if err := r.Cancel("other", ""); !errors.Is(err, trial.ErrNone) {
		t.Errorf("got %v, want that the other namespace has no trial", err)
	}
	if err := r.Cancel("default", ""); err != nil {
		t.Error(err)
	}
	if _, ok := r.Status("default", ""); ok {
		t.Error("the result is not forgotten")
	}
}

// Hidden keys are not in the result, nor are lines of the log.
func TestHideKeys(t *testing.T) {
	t.Parallel()
	r := trial.NewRunner(trial.Self, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	j := job(15, 10)
	j.HideKeys = true
	start(t, r, j, func(w io.Writer) error {
		_, _ = io.WriteString(w, "u1u2u3 is no request\n")
		return posts(w)
	})
	if got := result(t, wait(t, r)); bytes.Contains(got, []byte("u1")) {
		t.Errorf("got %s, want no key", got)
	}
}

// The faults of a log are the error of the trial.
func TestFaults(t *testing.T) {
	t.Parallel()
	r := trial.NewRunner(trial.Self, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	for want, write := range map[string]func(io.Writer) error{
		"the log has no line": func(io.Writer) error { return nil },
		"the time goes back": func(w io.Writer) error {
			_, err := io.WriteString(w, `{"time":1777620000000000,"attributes":{}}`+"\n"+`{"time":1577620000000000,"attributes":{}}`+"\n")
			return err
		},
	} {
		start(t, r, job(1, 2), write)
		if s := wait(t, r); s.State != trial.Failed || !strings.Contains(s.Error, want) {
			t.Errorf("got %v %q, want %q", s.State, s.Error, want)
		}
	}
	broken := errors.New("the log breaks")
	if _, err := r.Start(trial.Status{Namespace: "default"}, "", job(1, 2), func(context.Context, io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if s, _ := r.Status("default", ""); s.Error != broken.Error() {
		t.Errorf("got %+v", s)
	}
	none := trial.NewRunner(func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "none")) }, "", trial.MaxMemory)
	defer none.Close()
	start(t, none, job(1, 2), posts)
	if s := wait(t, none); s.State != trial.Failed || !strings.Contains(s.Error, "starting a worker") {
		t.Errorf("got %+v", s)
	}
}

// users writes a log with a request of each of n users.
func users(n int) func(io.Writer) error {
	return func(w io.Writer) error {
		to := bufio.NewWriter(w)
		for i := range n {
			fmt.Fprintf(to, `{"time":%d,"attributes":{"user":"%d"}}`+"\n", 1777620000000000+int64(i), i)
		}
		return to.Flush()
	}
}

// A trial that needs too much memory ends with an error that says so, whoever ends it. If only other quotas take too
// much, the result lists their limits.
func TestMemory(t *testing.T) {
	t.Parallel()
	small := trial.NewRunner(trial.Self, t.TempDir(), 64<<20)
	defer small.Close()
	start(t, small, job(15, 10), users(400_000))
	if s := wait(t, small); s.State != trial.Failed || s.Error != "the trial needs more than 64 MiB of memory, because the log has so many keys: try a shorter one" {
		t.Errorf("got %v %q", s.State, s.Error)
	}
	both := job(15, 10)
	both.Rules = []string{"posts", "all"}
	both.After = strings.Replace(both.After, "name: all,", "name: all, per: [user],", 1)
	start(t, small, both, users(110_000))
	var got trial.Result
	if s := wait(t, small); json.Unmarshal(result(t, s), &got) != nil || got.Comparison == nil || !slices.Equal(got.Unswept, both.Rules) {
		t.Errorf("got %v %q, unswept %v, want %v", s.State, s.Error, got.Unswept, both.Rules)
	}
	for _, script := range []string{"kill -9 $$", "echo fatal error: runtime: out of memory >&2; exit 2"} {
		r := trial.NewRunner(func() *exec.Cmd { return exec.Command("sh", "-c", script) }, t.TempDir(), trial.MaxMemory)
		start(t, r, job(1, 2), posts)
		if s := wait(t, r); s.State != trial.Failed || !strings.Contains(s.Error, "no memory left: try a shorter log") {
			t.Errorf("%s: got %v %q", script, s.State, s.Error)
		}
		r.Close()
	}
}

// A worker whose answer cannot be read is ended.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	r := trial.NewRunner(func() *exec.Cmd { return exec.Command("yes") }, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	start(t, r, job(1, 2), posts)
	if s := wait(t, r); s.State != trial.Failed || !strings.Contains(s.Error, "a worker's answer: ") {
		t.Errorf("got %v %q", s.State, s.Error)
	}
}

// A trial can be cancelled while its log is spooled and while it runs; the end of the service ends it, too.
func TestCancel(t *testing.T) {
	t.Parallel()
	sleeper := func() *exec.Cmd { return exec.Command("sleep", "1000") }
	r := trial.NewRunner(sleeper, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	spooling, ended := make(chan struct{}), make(chan error)
	go func() {
		_, err := r.Start(trial.Status{Namespace: "default"}, "", job(1, 2), func(ctx context.Context, w io.Writer) error {
			close(spooling)
			<-ctx.Done()
			_, err := w.Write([]byte("x"))
			return err
		})
		ended <- err
	}()
	<-spooling
	if err := r.Cancel("default", ""); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || err.Error() != "cancelled" {
		t.Errorf("got %v", err)
	}

	start(t, r, job(1, 2), posts)
	if err := r.Cancel("default", ""); err != nil {
		t.Error(err)
	}
	if s := wait(t, r); s.State != trial.Failed || s.Error != "cancelled" {
		t.Errorf("got %+v", s)
	}

	start(t, r, job(1, 2), posts)
	r.Close()
	if s := wait(t, r); s.Error != "the service ends" {
		t.Errorf("got %+v", s)
	}
	if _, err := r.Start(trial.Status{Namespace: "default"}, "", job(1, 2), func(context.Context, io.Writer) error { return nil }); err == nil {
		t.Error("a trial begins after Close")
	}
}

// A caller has one trial at a time in a namespace. Callers who are bound to a namespace leave a place for operators.
// 16 results are kept: the oldest of those who have most goes first.
func TestTrialsOfNamespaces(t *testing.T) {
	t.Parallel()
	r := trial.NewRunner(func() *exec.Cmd { return exec.Command("sleep", "1000") }, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	run := func(namespace, by string, want error) {
		t.Helper()
		if _, err := r.Start(trial.Status{Namespace: namespace, By: by}, by, job(1, 2), func(_ context.Context, w io.Writer) error { return posts(w) }); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", namespace, err, want)
		}
	}
	run("a", "a", nil)
	run("a", "a", trial.ErrBusy)
	run("b", "b", nil)
	run("c", "c", trial.ErrBusy)
	run("d", "", nil)
	run("e", "", trial.ErrBusy)
	for namespace, by := range map[string]string{"a": "a", "b": "b", "d": ""} {
		if err := r.Cancel(namespace, by); err != nil {
			t.Error(err)
		}
	}
	trial.Wait(r)
	kept := func(namespace, by string) bool { _, ok := r.Status(namespace, by); return ok }
	run("a", "", nil)
	if err := r.Cancel("a", ""); err != nil {
		t.Error(err)
	}
	trial.Wait(r)
	if !kept("a", "a") || !kept("a", "") {
		t.Error("the trial of one caller took the place of another's result")
	}
	for i := range 14 {
		run(fmt.Sprint("n", i), "", nil)
		if err := r.Cancel(fmt.Sprint("n", i), ""); err != nil {
			t.Error(err)
		}
		trial.Wait(r)
	}
	if !kept("a", "a") || !kept("b", "b") || kept("a", "") || kept("d", "") || !kept("n0", "") || !kept("n13", "") {
		t.Error("got others kept, want those of callers with one, and the last 14 of the one with most")
	}
}

// All results together have a limited size. The oldest ones of those who have most are dropped, also while somebody
// reads them; a result that is larger by itself is an error.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	size := trial.MaxResult / 2
	r := trial.NewRunner(func() *exec.Cmd {
		return exec.Command("sh", "-c", fmt.Sprintf(`printf '{"result":"'; head -c %d /dev/zero | tr '\0' a; printf '"}\n'`, size))
	}, t.TempDir(), trial.MaxMemory)
	defer r.Close()
	run := func(namespace, share string) trial.Status {
		t.Helper()
		if _, err := r.Start(trial.Status{Namespace: namespace}, share, job(1, 2), func(_ context.Context, w io.Writer) error { return posts(w) }); err != nil {
			t.Fatal(err)
		}
		trial.Wait(r)
		s, _ := r.Status(namespace, "")
		return s
	}
	run("quiet", "quiet")
	first := run("n0", "loud")
	if got := result(t, first); len(got) != size+2 {
		t.Errorf("got %d bytes, want %d", len(got), size+2)
	}
	for i := 1; i < 16; i++ {
		run(fmt.Sprint("n", i), "loud")
	}
	quiet, ok := r.Status("quiet", "")
	if !ok {
		t.Fatal("a result of one caller is dropped for those of another")
	}
	kept := len(result(t, quiet))
	for i := range 16 {
		if s, ok := r.Status(fmt.Sprint("n", i), ""); ok {
			kept += len(result(t, s))
		}
	}
	if _, ok := r.Status("n15", ""); kept > trial.MostBytes || kept < trial.MostBytes/2 || !ok {
		t.Errorf("got %d bytes of results, the last one among them: %v; want at most %d", kept, ok, trial.MostBytes)
	}
	if _, err := first.Result.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("a result that is dropped can be read")
	}
	size = trial.MaxResult
	if s := run("large", ""); s.State != trial.Failed || !strings.Contains(s.Error, "the result is larger than 8 MiB") {
		t.Errorf("got %v %q", s.State, s.Error)
	}
}
