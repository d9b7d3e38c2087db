package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Programs that hold slots of a service, each in a separate process. The test
// program runs as one of them when it is called by that name: see TestMain.

// caller calls a service from a program.
type caller struct{ client client }

// answered is what the programs need of an answer.
type answered struct {
	Allowed    bool    `json:"allowed"`
	RetryAfter float64 `json:"retry_after"`
	Receipt    string  `json:"receipt"`
	Limits     []struct {
		Held bool `json:"held"`
	} `json:"limits"`
}

// call calls a path with the attributes of an export, and a receipt if there is
// one.
func (c *caller) call(path, receipt string) (a answered, err error) {
	body := map[string]any{"attributes": map[string]string{"action": "export"}}
	if receipt != "" {
		body["receipt"] = receipt
	}
	text, err := c.client.call(context.Background(), http.MethodPost, path, body)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

// must ends the program with an error.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holder ADDR INTERVAL takes a place and renews it until it is killed. For the take
// and for each renewal it prints the time before the call and the time after it.
func holder() {
	c := caller{client{addr: os.Args[1]}}
	every, err := time.ParseDuration(os.Args[2])
	must(err)
	path, receipt := "/v1/take", ""
	for range time.Tick(every) {
		before := time.Now().UnixMicro()
		a, err := c.call(path, receipt)
		must(err)
		if !a.Allowed || len(a.Limits) != 1 || !a.Limits[0].Held {
			must(fmt.Errorf("%s: got %+v, want a place", path, a))
		}
		if path == "/v1/take" {
			path, receipt = "/v1/renew", a.Receipt
		}
		fmt.Println(before, time.Now().UnixMicro())
	}
}

// crowd ADDR ROUNDS takes a place so many times, and settles it, from the end of its input
// on. For each place it prints a time when it certainly had it already, and one when it had
// it still.
func crowd() {
	c := caller{client{addr: os.Args[1]}}
	rounds, err := strconv.Atoi(os.Args[2])
	must(err)
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
	for rounds > 0 {
		a, err := c.call("/v1/take", "")
		must(err)
		if !a.Allowed {
			time.Sleep(rand.N(5 * time.Millisecond))
			continue
		}
		from := time.Now().UnixMicro()
		if rand.IntN(4) == 0 {
			_, err := c.call("/v1/renew", a.Receipt)
			must(err)
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		until := time.Now().UnixMicro()
		path := "/v1/settle"
		if rand.IntN(4) == 0 {
			path = "/v1/cancel"
		}
		ended, err := c.call(path, a.Receipt)
		must(err)
		if len(ended.Limits) != 1 || !ended.Limits[0].Held {
			must(fmt.Errorf("%s: got %+v, want the place", path, ended))
		}
		fmt.Println(from, until)
		rounds--
	}
}

// times reads two times in a line of a program.
func times(t *testing.T, line string) (a, b time.Time) {
	t.Helper()
	var from, until int64
	if _, err := fmt.Sscan(line, &from, &until); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return time.UnixMicro(from), time.UnixMicro(until)
}

// placesFor starts a service on which a number of exports may be in flight, each
// for a length of time.
func placesFor(t *testing.T, number int, length time.Duration) *process {
	t.Helper()
	return startProcess(t, "", fmt.Sprintf("rules: [{name: exports, when: {action: export}, limit: %d, window: {held: %v}}]", number, length))
}

// A holder that is killed gives its place back one length after its last renewal,
// and not before.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	const length = 4 * time.Second // of which a busy machine may take a part from the holder
	n := placesFor(t, 1, length)
	cmd := exec.Command("holder", n.api, "400ms")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for began := time.Now(); time.Since(began) < length+time.Second; { // the renewals count
		if !lines.Scan() {
			t.Fatal("the holder ended")
		}
	}
	_ = cmd.Process.Kill() // kill -9
	last, _ := times(t, lines.Text())
	for lines.Scan() {
		last, _ = times(t, lines.Text())
	}
	_ = cmd.Wait() // it was killed
	killed := time.Now()

	c := caller{client{addr: n.api}}
	denials := 0
	for range time.Tick(5 * time.Millisecond) {
		before := time.Now()
		a, err := c.call("/v1/take", "")
		if err != nil {
			t.Fatal(err)
		}
		if !a.Allowed {
			denials++
			free := before.Add(time.Duration(a.RetryAfter * float64(time.Second)))
			if most := killed.Add(length); free.After(most) {
				t.Fatalf("the place is free %v after one length", free.Sub(most))
			}
			if before.After(killed.Add(length)) {
				t.Fatalf("the place is not free %v after the holder was killed", before.Sub(killed))
			}
			continue
		}
		if early := time.Until(last.Add(length)); early > 0 {
			t.Errorf("the place was free %v before one length after the last renewal", early)
		}
		break
	}
	if denials == 0 {
		t.Error("got no denial, want the place held until one length after the last renewal")
	}
}

// 64 processes never have more places than there are, by their own clocks.
func TestNeverMoreInFlight(t *testing.T) {
	t.Parallel()
	const rounds, places = 6, 5
	processes := 64
	if testing.Short() {
		processes = 16
	}
	n := placesFor(t, places, time.Minute)
	var mu sync.Mutex
	type change struct {
		at   time.Time
		more int
	}
	var changes []change // guarded by mu
	var group sync.WaitGroup
	wait, begin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for range processes {
		var out bytes.Buffer
		cmd := exec.Command("crowd", n.api, strconv.Itoa(rounds))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = wait, &out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process ended with %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(out.String()) {
				from, until := times(t, line)
				changes = append(changes, change{from, 1}, change{until, -1})
			}
		})
	}
	if err := errors.Join(wait.Close(), begin.Close()); err != nil {
		t.Error(err)
	}
	group.Wait()
	if len(changes) != 2*processes*rounds {
		t.Fatalf("got %d places, want %d", len(changes)/2, processes*rounds)
	}
	// A place that ends at an instant does not overlap one that begins there.
	slices.SortFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.more - b.more
	})
	inFlight, most := 0, 0
	for _, c := range changes {
		inFlight += c.more
		most = max(most, inFlight)
	}
	if most > places {
		t.Errorf("got %d in flight at the same time, want at most %d", most, places)
	}
	if most < 2 {
		t.Errorf("got %d in flight at the same time, want some that run into the limit", most)
	}
	var u usage
	text, err := (&client{addr: n.api}).call(t.Context(), http.MethodGet, "/v1/usage?rule=exports", nil)
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err != nil || u.Used != 0 || u.Holds != 0 {
		t.Errorf("at the end: got %d used, %d held and error %v, want none", u.Used, u.Holds, err)
	}
}
