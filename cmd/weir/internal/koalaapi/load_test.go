package koalaapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/rule"
)

// Fault 1: 100 callers at once, at a limit of 2, were up to 27 admitted ones.
// Fault 3: leak admitted one more than its count.
func TestWriteThroughAdmitsTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, `rules:
  - {name: koala-1, code: 1, when: {act: count}, per: [uid], limit: 2, window: {fixed: 5s}}
  - {name: koala-2, code: 2, when: {act: leak}, per: [uid], limit: 10, window: 100s}
`)
	for act, want := range map[string]int64{"count": 2, "leak": 10} {
		var admitted atomic.Int64
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if strings.Contains(b.get(t, "/rule/browse?act="+act+"&uid=7&_writeThrough=yes"), `"Err_no":0,`) {
					admitted.Add(1)
				}
			})
		}
		callers.Wait()
		if got := admitted.Load(); got != want {
			t.Errorf("%s: got %d admitted, want %d", act, got, want)
		}
		if got := b.used(t, map[string]string{"count": "koala-1", "leak": "koala-2"}[act], "uid=7"); got != want {
			t.Errorf("%s: got %d counted, want %d", act, got, want)
		}
	}
}

// Rules that are swapped under way answer for every request, with a row of the
// one or the other set.
func TestRulesSwappedUnderLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t, "rules: [{name: koala-1, code: 1, when: {act: ask}, then: deny}]")
	other := newBench(t, "rules: [{name: x, when: {act: no}, then: deny}, {name: koala-2, code: 2, when: {act: ask}, then: deny}]").engine.Rules()
	first := b.engine.Rules()
	done := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				for _, set := range []*rule.Set{other, first} {
					if err := b.engine.SetRules(set); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	for range 100 {
		for _, url := range []string{"/rule/browse?act=ask", "/rule/browse_complete?act=ask"} {
			got := b.get(t, url)
			if !strings.Contains(got, `"Ret_code":1,"Err_no":10`) && !strings.Contains(got, `"Ret_code":2,"Err_no":10`) {
				t.Errorf("%s: got %s, want rule 1 or 2 to deny", url, got)
			}
		}
	}
	close(done)
	swapper.Wait()
}

// An answer whose length net/http does not compute has its length nevertheless:
// clients that read to the end of the connection know no chunks.
func TestMultiIsNotChunked(t *testing.T) {
	t.Parallel()
	b := newBench(t, "rules: [{name: koala-1, code: 1, when: {act: ask}, then: deny}]")
	ask := func(jobs int) string {
		list := strings.TrimSuffix(strings.Repeat(`{"Id":"1","Arg":"act%3Dask"},`, jobs), ",")
		return b.send(t, "GET /multi/browse?argsJson=["+list+"] HTTP/1.1\r\n\r\n", 1)
	}
	head, body, _ := strings.Cut(ask(1000), "\r\n\r\n")
	if !strings.Contains(head, fmt.Sprintf("Content-Length: %d", len(body))) || strings.Count(body, `"Ret_code":1,`) != 1000 {
		t.Errorf("got %d bytes behind %s, want 1000 rows and their length", len(body), head)
	}
	if got := ask(1001); !strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.Count(got, `"Err_no":-1,`) != 1001 {
		t.Errorf("got %.300s…, want more than 1000 requests refused, each with its row", got)
	}
}

// A head longer than the limit is refused, in its first line and in its fields.
func TestHeadIsTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, "rules: [{name: a, when: {act: ask}, then: deny}]")
	long := strings.Repeat("a", koalaapi.MaxHead+5000)
	for _, head := range []string{"GET /rule/browse?act=" + long + " HTTP/1.1\r\n", "GET /rule/browse HTTP/1.1\r\nX: " + long + "\r\n"} {
		if got := b.send(t, head+"\r\n", 1); !strings.HasPrefix(got, "HTTP/1.1 431 ") || !strings.Contains(got, `"Err_no":-1,`) {
			t.Errorf("%.40s…: got %.60s, want 431", head, got)
		}
	}
}

// HEAD gets the head of an answer, and an update by HEAD counts: koala ignores the method.
func TestMethodHead(t *testing.T) {
	t.Parallel()
	b := newBench(t, "rules: [{name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 5, window: {fixed: 1h}}]")
	r, err := http.Head("http://" + b.addr + "/rule/update?act=ask&uid=7")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if used := b.used(t, "koala-1", "uid=7"); used != 1 {
		t.Errorf("got %d used, want 1", used)
	}
}
