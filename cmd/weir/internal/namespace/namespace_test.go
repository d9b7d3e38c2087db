package namespace_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

func engine(t *testing.T, rules ...rule.Rule) *weir.Engine {
	t.Helper()
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return scripttest.Engine(t, set)
}

func TestChoose(t *testing.T) {
	t.Parallel()
	home, eu := namespace.New("default", engine(t), 0, nil), namespace.New("eu", engine(t), 0, nil)
	set := namespace.NewSet(home, eu, namespace.New("broken", nil, 0, nil))
	bound, ofDefault := &access.Holder{Name: "shop", Namespace: "eu"}, &access.Holder{Name: "web", Namespace: "default"}
	broken := &access.Holder{Name: "b", Namespace: "broken"}
	for _, tc := range []struct {
		holder *access.Holder
		asked  string
		want   *namespace.Namespace
		err    string
	}{
		{nil, "", home, ""},
		{nil, "default", home, ""},
		{nil, "eu", eu, ""},
		{&access.Holder{Name: "ops"}, "eu", eu, ""},
		{ofDefault, "", home, ""},
		{ofDefault, "eu", nil, `web may use the namespace default only, and the call is for "eu"`},
		{bound, "", eu, ""},
		{bound, "eu", eu, ""},
		{bound, "default", nil, `shop may use the namespace eu only, and the call is for "default"`},
		{bound, "none", nil, `shop may use the namespace eu only, and the call is for "none"`},
		{nil, "none", nil, `namespace "none": not found`},
		{nil, "EU", nil, `namespace "EU": not found`},
		{nil, "broken", nil, "namespace broken: has no rules in force, because its file has errors; the service's log lists them"},
		{broken, "", nil, "namespace broken: has no rules in force, because its file has errors; the service's log lists them"},
	} {
		got, err := set.Choose(nil, tc.holder, tc.asked)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%v asks for %q: got %v %q, want %v %q", tc.holder, tc.asked, got, text, tc.want, tc.err)
		}
	}
	if _, err := set.Choose(nil, nil, "none"); !errors.Is(err, namespace.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if _, err := set.Choose(nil, nil, "broken"); !errors.Is(err, namespace.ErrNoRules) {
		t.Errorf("got %v, want ErrNoRules", err)
	}
}

// Large batches are planned few at a time. Small ones and those of another namespace do not wait for them, and a wait ends
// with its context.
func TestRunPlansFewLargeBatches(t *testing.T) {
	t.Parallel()
	e := engine(t, rule.Rule{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)})
	n, other := namespace.New("default", e, 0, nil), namespace.New("other", e, 0, nil)
	batch := func(n int) (items []weir.Item) {
		for i := range n {
			items = append(items, weir.Item{Request: weir.Request{Attributes: weir.Attributes("user", strconv.Itoa(i))}})
		}
		return items
	}
	gone, end := context.WithCancel(t.Context())
	end()

	planning, finish := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			first := sync.OnceFunc(func() { planning <- struct{}{}; <-finish })
			if _, err := n.Run(t.Context(), batch(33), run.Options{Escapes: func(string) int { first(); return 0 }}); err != nil {
				t.Error(err)
			}
		})
		<-planning
	}
	if _, err := n.Run(gone, batch(33), run.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a large batch, want it to wait until its context ended", err)
	}
	if _, err := n.Run(gone, batch(32), run.Options{}); err != nil {
		t.Errorf("got %v for a small batch, want it to be decided", err)
	}
	late, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if _, err := other.Run(late, batch(33), run.Options{}); err != nil {
		t.Errorf("got %v for a large batch of another namespace, want it to be decided", err)
	}
	close(finish)
	group.Wait()

	// Once a batch is planned, others can be, even within its Admit.
	nested := func(run.Size) error { _, err := n.Run(t.Context(), batch(33), run.Options{}); return err }
	for range runtime.GOMAXPROCS(0) {
		admit := nested
		nested = func(run.Size) error {
			_, err := n.Run(t.Context(), batch(33), run.Options{Admit: admit})
			return err
		}
	}
	if err := nested(run.Size{}); err != nil {
		t.Error(err)
	}
}

// A namespace that was removed or replaced is gone. The set without a default one
// serves the others.
func TestReplace(t *testing.T) {
	t.Parallel()
	home, eu := namespace.New("default", engine(t), 0, nil), namespace.New("eu", engine(t), 0, nil)
	set := namespace.NewSet(home, eu)
	next := namespace.New("eu", engine(t), 0, nil)
	set.Replace([]*namespace.Namespace{next})
	if !home.Gone() || !eu.Gone() || next.Gone() {
		t.Errorf("got gone %v %v %v, want the first two", home.Gone(), eu.Gone(), next.Gone())
	}
	if _, err := set.Choose(nil, nil, ""); !errors.Is(err, namespace.ErrUnknown) {
		t.Errorf("got %v without a default, want ErrUnknown", err)
	}
	if got, err := set.Choose(nil, nil, "eu"); got != next {
		t.Errorf("got %v %v, want the new one", got, err)
	}
	if all := set.All(); len(all) != 1 || all[0].Name() != "eu" {
		t.Errorf("got %v", all)
	}
}

func TestAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path       string
		header     []string
		name, rest string
		err        string // a part of it
	}{
		{path: "/v1/take", rest: "/v1/take"},
		{path: "/ns/shop/v1/take", name: "shop", rest: "/v1/take"},
		{path: "/ns/shop//v1/take", name: "shop", rest: "//v1/take"},
		{path: "/ns/shop", name: "shop"},
		{path: "/ns", rest: "/ns"},
		{path: "/nsx/v1/take", rest: "/nsx/v1/take"},
		{path: "/ns/", err: "want up to 64 letters"},
		{path: "/ns//v1/take", err: "want up to 64 letters"},
		{path: "/ns/../v1/take", err: "want up to 64 letters"},
		{path: "/ns/a b/v1/take", err: "want up to 64 letters"},
		{path: "/ns/a\\b/v1/take", err: "want up to 64 letters"},
		{path: "/ns/shop/ns/eu/v1/take", name: "shop", rest: "/ns/eu/v1/take"},
		{path: "/v1/take", header: []string{"shop"}, name: "shop", rest: "/v1/take"},
		{path: "/v1/take", header: []string{"shop", "shop"}, name: "shop", rest: "/v1/take"},
		{path: "/v1/take", header: []string{"shop", "eu"}, err: "is there twice"},
		{path: "/v1/take", header: []string{""}, err: "want up to 64 letters"},
		{path: "/v1/take", header: []string{"../eu"}, err: "want up to 64 letters"},
		{path: "/v1/take", header: []string{"shop, eu"}, err: "want up to 64 letters"},
		{path: "/ns/shop/v1/take", header: []string{"shop"}, name: "shop", rest: "/v1/take"},
		{path: "/ns/shop/v1/take", header: []string{"eu"}, err: "eu, and the path names the namespace shop"},
	} {
		name, rest, err := namespace.Cut(tc.path)
		if err == nil {
			name, err = namespace.Asked(name, tc.header)
		}
		if tc.err != "" {
			var f *fault.Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s %q: got %v, want a fault with %s", tc.path, tc.header, err, tc.err)
			}
			continue
		}
		if err != nil || name != tc.name || rest != tc.rest {
			t.Errorf("%s %q: got %q %q %v, want %q %q", tc.path, tc.header, name, rest, err, tc.name, tc.rest)
		}
	}
}

// A path and a header lead to a namespace whose name is valid, or to an error.
func FuzzAsked(f *testing.F) {
	for _, path := range []string{"/v1/take", "/ns/shop/v1/take", "/ns/../x", "/ns//", "/ns/a"} {
		f.Add(path, "shop", true)
	}
	f.Fuzz(func(t *testing.T, path, header string, sent bool) {
		name, rest, err := namespace.Cut(path)
		if err != nil {
			return
		}
		if name == "" && rest != path || name != "" && "/ns/"+name+rest != path {
			t.Fatalf("%q: got %q %q", path, name, rest)
		}
		var values []string
		if sent {
			values = []string{header}
		}
		asked, err := namespace.Asked(name, values)
		if err != nil {
			return
		}
		if asked == "" && (name != "" || sent) || name != "" && asked != name || sent && asked != header {
			t.Fatalf("%q %q: got %q", path, values, asked)
		}
		if asked != "" && access.CheckName(asked) != nil {
			t.Fatalf("%q %q: got %q, which is no name", path, values, asked)
		}
	})
}

// The audit trail has what has changed: a ban that was lifted, and not a call without one. It has the attributes of the
// key, and no others that the call had: a caller could fill it with them.
func TestAuditHasTheKey(t *testing.T) {
	t.Parallel()
	e := engine(t, rule.Rule{Name: "calls", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Hour}})
	trail := audit.New(audit.Config{})
	n, ctx := namespace.New("shop", e, 0, nil).WithKept(&namespace.Kept{Audit: trail}), t.Context()
	attributes := []weir.Attribute{{Name: "user", Value: "ann"}, {Name: "x", Value: strings.Repeat("<", 1000)}}
	_, _, err := n.SetCount(ctx, audit.Caller{}, "calls", attributes, 3)
	for _, banned := range []bool{false, true} {
		if banned {
			if d, err := e.Take(ctx, weir.Request{Attributes: attributes, Hits: 3}); err != nil || d.Allowed {
				t.Fatalf("got %+v, %v, want a ban", d, err)
			}
		}
		lifted, err := n.LiftBan(ctx, audit.Caller{}, "calls", attributes)
		if err != nil || lifted != banned {
			t.Errorf("banned %t: got lifted %t, %v", banned, lifted, err)
		}
	}
	err = errors.Join(err, n.Forget(ctx, audit.Caller{}, "calls", attributes))
	found, err2 := trail.List(ctx, "shop", 10, time.Time{})
	if err != nil || err2 != nil || len(found.Entries) != 3 {
		t.Fatalf("got %+v, %v, %v, want three entries", found, err, err2)
	}
	for _, entry := range found.Entries {
		if len(entry.Attributes) != 1 || entry.Attributes["user"] != "ann" {
			t.Errorf("%s: got attributes %v, want those of the key", entry.Action, entry.Attributes)
		}
	}
}
