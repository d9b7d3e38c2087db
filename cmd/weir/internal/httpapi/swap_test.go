package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// between is a store that does something before it answers.
type between struct {
	store.Store
	do func()
}

func (b *between) Do(ctx context.Context, calls []store.Call) error {
	b.do()
	return b.Store.Do(ctx, calls)
}

// A gate answers with the outcome as the rules that decided define it, also
// when they are replaced before it writes.
func TestGateWhileRulesAreSwapped(t *testing.T) {
	t.Parallel()
	first := scripttest.Rules(t, `{outcomes: {told: {status: 403}}, rules: [{name: posts, per: [user], limit: 0, window: 1h, then: told}]}`)
	other := scripttest.Rules(t, `{outcomes: {told: {allow: true}}, rules: [{name: staff, when: {user: ann}, then: told}]}`)
	counts := &between{Store: memstore.New()}
	defer counts.Close()
	e := scripttest.Engine(t, first, weir.WithStore(counts))
	counts.do = func() { _ = e.SetRules(other) }
	w := httptest.NewRecorder()
	api := httpapi.New(namespace.Only(e), httpapi.Config{})
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/gate?user=bob", nil))
	if w.Code != http.StatusForbidden || w.Header().Get("RateLimit-Policy") != `"posts";q=0;w=3600` {
		t.Errorf("got %d %v, want 403 and the limit of posts", w.Code, w.Header())
	}
}
