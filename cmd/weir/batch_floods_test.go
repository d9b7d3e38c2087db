//go:build !race

// With the race detector a process takes several times the memory, and an answer can take longer than
// the service has for it.

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Floods of batches end under 300 MiB, every one is answered or refused, and what
// was refused was not counted.
func TestBatchFloods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		rules           int
		requests, bytes int // of one batch
		status          map[int]bool
		bad             string // a request with a fault; "": none
	}{
		{"long keys and fifty rules", 50, 900, 1000, map[int]bool{413: true, 503: true}, ""},
		{"two thousand rules", 2000, 1000, 1, map[int]bool{413: true, 503: true}, ""},
		{"answers of three megabytes", 50, 400, 10, map[int]bool{200: true, 503: true}, ""},
		{"faults with long names", 50, 8, 10, map[int]bool{200: true, 503: true}, `{"` + strings.Repeat(`\u0001`, 160) + `":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) { // one after the other: the service has 10 seconds for an answer
			p := startProcess(t, "", rulesPerUser(tc.rules))
			body := batchOf(tc.requests, tc.bytes)
			if tc.bad != "" {
				body = strings.TrimSuffix(body, "]}") + strings.Repeat(","+tc.bad, 1000-tc.requests) + "]}"
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[int]int{}
			for range 40 {
				wg.Go(func() {
					status, wait, err := send(p.api+"/v1/batch", body)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("got no answer: %v", err)
					}
					if status == 503 && wait != "1" {
						t.Errorf("got 503 and Retry-After %q, want 1", wait)
					}
					got[status]++
				})
			}
			wg.Wait()
			for status := range got {
				if !tc.status[status] {
					t.Errorf("got answers %v, want only %v", got, tc.status)
				}
			}
			resp, err := http.Get(fmt.Sprintf("%s/v1/usage?rule=r0&user=%0*d", p.api, tc.bytes, 7))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if want := fmt.Sprintf(`"used":%d,`, got[200]); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("got %s %v, want %s: what was answered is counted, and nothing else", text, err, want)
			}
			const most = 300 << 20
			if peak := p.peak(t); peak > most {
				t.Errorf("got %d MiB, want at most %d", peak>>20, most>>20)
			} else {
				t.Logf("answers %v, peak %d MiB", got, peak>>20)
			}
		})
	}
}
