package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/window"
)

// overriding returns an API that keeps overrides of the rule calls.
func overriding(t testing.TB) *httpapi.API {
	t.Helper()
	engine, _ := scripttest.NewEngine(t, "rules: [{name: calls, per: [customer], limit: 1, window: 1h}]", func() window.Instant { return window.At(scripttest.Start) })
	space := keeping(namespace.New(namespace.Default, engine, 0, nil), time.Now)
	space.Kept().Overrides.Follow(namespace.Default, engine.Override)
	return httpapi.New(namespace.NewSet(space), httpapi.Config{})
}

func serve(api http.Handler, method, url, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(method, url, strings.NewReader(body)))
	return w
}

// Overrides are listed in pages, each of them once.
func TestOverridePages(t *testing.T) {
	t.Parallel()
	api := overriding(t)
	const n = 2100
	for i := range n {
		if w := serve(api, http.MethodPut, "/v1/overrides", fmt.Sprintf(`{"rule":"calls","attributes":{"customer":%d},"limit":5}`, i)); w.Code != http.StatusOK {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	seen, query := map[string]bool{}, ""
	for range 4 {
		var got struct {
			Overrides []struct{ Attributes map[string]string }
			Next      string
		}
		if err := json.Unmarshal(serve(api, http.MethodGet, "/v1/overrides"+query, "").Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for _, o := range got.Overrides {
			seen[o.Attributes["customer"]] = true
		}
		if query = "?after=" + got.Next; got.Next == "" {
			break
		}
	}
	if len(seen) != n || query != "?after=" {
		t.Errorf("got %d overrides, want %d", len(seen), n)
	}
	for _, query := range []string{"after=%00", "after=", "rule=a&rule=b", "n=5"} {
		if w := serve(api, http.MethodGet, "/v1/overrides?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d %s, want 400", query, w.Code, w.Body)
		}
	}
	for _, query := range []string{"", "rule=calls", "customer=1", "rule=calls&customer=1&customer=2"} {
		if w := serve(api, http.MethodDelete, "/v1/overrides?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("DELETE %s: got %d %s, want 400", query, w.Code, w.Body)
		}
	}
	for query, want := range map[string]int{"rule=calls&customer=none": 204, "rule=calls&costumer=1": 400, "rule=gone&customer=1": 404} {
		if w := serve(api, http.MethodDelete, "/v1/overrides?"+query, ""); w.Code != want {
			t.Errorf("DELETE %s: got %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
}

// No body makes anything but an override or a problem, and what is answered is what was set.
func FuzzOverride(f *testing.F) {
	for _, body := range []string{
		`{"rule":"calls","attributes":{"customer":"acme"},"limit":5}`,
		`{"rule":"calls","attributes":{"customer":5},"limit":0,"until":"2222-01-01T00:00:00.123456789+01:00","note":"\u0000"}`,
		`{"rule":"calls","attributes":{"customer":"a"},"limit":9007199254740993}`,
		`{"rule":"calls","attributes":{"customer":"a"},"limit":1,"until":"2001-01-01T00:00:00Z"}`,
		`{"rule":"calls","attributes":{"customer":"a"},"limit":1,"burst":1}`,
		`{"rule":"calls","attributes":{"customer":"a","b":"c"},"limit":1}`,
		`{"rule":"calls","attributes":{},"limit":1.5}`,
		`{"rule":"calls","rule":"calls"}`,
		`{"limit":-1}`, `[]`, `{}`, ``,
	} {
		f.Add(body)
	}
	api := overriding(f)
	f.Fuzz(func(t *testing.T, body string) {
		w := serve(api, http.MethodPut, "/v1/overrides", body)
		var got struct {
			Rule       string
			Attributes map[string]string
			Limit      int64
			Set        time.Time
		}
		switch err := json.Unmarshal(w.Body.Bytes(), &got); {
		case err != nil:
			t.Fatalf("got %d %s: %v", w.Code, w.Body, err)
		case w.Code == http.StatusBadRequest:
			return
		case w.Code != http.StatusOK, got.Rule != "calls", got.Attributes["customer"] == "", got.Limit < 0, got.Set.IsZero():
			t.Fatalf("%s: got %d %s", body, w.Code, w.Body)
		}
		listed := serve(api, http.MethodGet, "/v1/overrides?rule=calls", "").Body.String()
		if !strings.Contains(listed, strings.TrimSpace(w.Body.String())) {
			t.Fatalf("set %s, listed %s", w.Body, listed)
		}
		q := url.Values{"rule": {"calls"}, "customer": {got.Attributes["customer"]}}
		if w := serve(api, http.MethodDelete, "/v1/overrides?"+q.Encode(), ""); w.Code != http.StatusNoContent {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		if listed := serve(api, http.MethodGet, "/v1/overrides?rule=calls", "").Body.String(); strings.Contains(listed, `"rule"`) {
			t.Fatalf("still listed: %s", listed)
		}
	})
}
