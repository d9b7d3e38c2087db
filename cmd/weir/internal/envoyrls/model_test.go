package envoyrls_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// reference is a model of envoyproxy/ratelimit: a random file with one entry a descriptor,
// random settings, and what was counted.
type reference struct {
	*rand.Rand
	limits []*referenceLimit
	used   map[string]int64

	quota, shadow, together, headers, metadata, merge bool
}

type referenceLimit struct {
	key, value     string // of the entry; an empty value stands for all
	requests       int64  // -1: none, so that the descriptor is whitelisted
	unlimited      bool
	shadow, quota  bool
	share          bool
	name, replaces string
}

// asked is a descriptor of a call, with its limit.
type asked struct {
	text     string
	hits     int64
	limit    *referenceLimit // nil: none
	override bool
	requests int64
	counter  string // empty: it counts nothing

	over      bool
	remaining int64
}

// TestFilesLikeTheReference compares answers with the model, over random files, calls and
// all settings that concern the whole service.
func TestFilesLikeTheReference(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(600) {
		r := newReference(seed)
		files, err := envoyfile.New(r.sources(), envoyfile.Options{MergeDomains: r.merge, SpareDenied: r.together})
		if err != nil {
			t.Fatal(err)
		}
		now := window.At(time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC))
		engine, err := weir.NewEngine(files.Set, weir.WithStore(memstore.New(memstore.WithClock(func() window.Instant { return now }))))
		if err != nil {
			t.Fatal(err)
		}
		settings := &envoyrls.Reference{
			Files: func() *envoyfile.Config { return files }, Now: func() window.Instant { return now },
			Quota: r.quota, Shadow: r.shadow, Together: r.together, Metadata: r.metadata,
		}
		if r.headers {
			settings.Headers = [3]string{"Limit", "Remaining", "Reset"}
		}
		api := envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}, Reference: settings})
		for range 20 {
			in := r.call()
			out, err := api.Answer(t.Context(), namespaceOf(engine), in)
			if err != nil {
				t.Fatalf("seed %d, %v: %v", seed, in, err)
			}
			got, want := answerText(out), r.answer(in)
			if got != want {
				for _, source := range r.sources() {
					t.Logf("%s", source.Text)
				}
				t.Fatalf("seed %d, quota %v, shadow %v, together %v\n%v\ngot\n%swant\n%s", seed, r.quota, r.shadow, r.together, in, got, want)
			}
			seen[strings.SplitN(got, "\n", 2)[0]]++
		}
	}
	if seen["OK"] < 1000 || seen["OVER_LIMIT"] < 1000 {
		t.Errorf("got %v, want many of both", seen)
	}
}

func newReference(seed uint64) *reference {
	r := &reference{Rand: rand.New(rand.NewPCG(seed, 3)), used: map[string]int64{}}
	for _, setting := range []*bool{&r.quota, &r.shadow, &r.together, &r.headers, &r.metadata, &r.merge} {
		*setting = r.IntN(3) == 0
	}
	for k := range 4 {
		for _, value := range []string{"a", "f/*", ""} {
			if r.IntN(3) == 0 {
				continue
			}
			l := &referenceLimit{
				key: fmt.Sprint("k", k), value: value, requests: r.Int64N(6) - 1, unlimited: r.IntN(8) == 0, shadow: r.IntN(5) == 0, quota: r.IntN(4) == 0,
				share: value == "f/*" && r.IntN(2) == 0,
			}
			if r.IntN(4) == 0 {
				l.name = fmt.Sprint("n", r.IntN(3))
			}
			if other := fmt.Sprint("n", r.IntN(3)); r.IntN(6) == 0 && other != l.name {
				l.replaces = other
			}
			r.limits = append(r.limits, l)
		}
	}
	return r
}

// sources returns the file, or two with a part of its limits each.
func (r *reference) sources() []envoyfile.Source {
	texts := []string{"domain: d\ndescriptors:\n"}
	if r.merge {
		texts = append(texts, texts[0])
	}
	for i, l := range r.limits {
		var b strings.Builder
		fmt.Fprintf(&b, "  - {key: %s, value: %q, shadow_mode: %v, quota_mode: %v, share_threshold: %v", l.key, l.value, l.shadow, l.quota, l.share)
		switch {
		case l.unlimited:
			fmt.Fprintf(&b, ", rate_limit: {unlimited: true")
		case l.requests >= 0:
			fmt.Fprintf(&b, ", rate_limit: {unit: hour, requests_per_unit: %d", l.requests)
		}
		if l.limits() {
			fmt.Fprintf(&b, ", name: %q", l.name)
			if l.replaces != "" {
				fmt.Fprintf(&b, ", replaces: [{name: %s}]", l.replaces)
			}
			b.WriteByte('}')
		}
		b.WriteString("}\n")
		texts[i%len(texts)] += strings.ReplaceAll(strings.ReplaceAll(b.String(), `, value: ""`, ""), `, name: ""`, "")
	}
	var all []envoyfile.Source
	for i, text := range texts {
		all = append(all, envoyfile.Source{Name: fmt.Sprint(i, ".yaml"), Text: []byte(text)})
	}
	return all
}

// limits reports whether the descriptor of the file has a limit, be it without an end.
func (l *referenceLimit) limits() bool { return l.unlimited || l.requests >= 0 }

func (r *reference) call() *rls.RateLimitRequest {
	in := &rls.RateLimitRequest{Domain: []string{"d", "d", "d", "d", "e"}[r.IntN(5)], HitsAddend: uint32(r.IntN(3))}
	for range 1 + r.IntN(4) {
		d := &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{
			{Key: fmt.Sprint("k", r.IntN(5)), Value: []string{"a", "f/1", "f/2", "b"}[r.IntN(4)]},
		}}
		if r.IntN(5) == 0 {
			d.HitsAddend = wrapperspb.UInt64(1 + r.Uint64N(3))
		}
		if r.IntN(6) == 0 {
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: r.Uint32N(5), Unit: []types.RateLimitUnit{types.RateLimitUnit_HOUR, types.RateLimitUnit_DAY}[r.IntN(2)],
			}
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// find returns the limit of a descriptor.
func (r *reference) find(domain string, e *common.RateLimitDescriptor_Entry) *referenceLimit {
	for _, value := range []string{e.Value, "f/*", ""} {
		i := slices.IndexFunc(r.limits, func(l *referenceLimit) bool { return domain == "d" && l.key == e.Key && l.value == value })
		if i >= 0 && (value != "f/*" || strings.HasPrefix(e.Value, "f/")) {
			return r.limits[i]
		}
	}
	return nil
}

// asks returns the descriptors of a call with their limits.
func (r *reference) asks(in *rls.RateLimitRequest) []*asked {
	var all []*asked
	replaced := map[string]bool{}
	for _, d := range in.Descriptors {
		e := d.Entries[0]
		a := &asked{text: e.Key + "=" + e.Value, hits: max(int64(in.HitsAddend), 1), limit: r.find(in.Domain, e)}
		if d.HitsAddend != nil {
			a.hits = int64(d.HitsAddend.Value)
		}
		if a.limit != nil && !a.limit.limits() {
			a.limit = nil
		}
		if a.override = d.Limit != nil && in.Domain == "d"; a.override {
			a.requests = int64(d.Limit.RequestsPerUnit)
			if a.counter = a.text + "/" + d.Limit.Unit.String(); a.limit == nil || a.limit.unlimited || d.Limit.Unit != types.RateLimitUnit_HOUR {
				a.counter += " of overrides"
			}
		} else if a.limit != nil {
			replaced[a.limit.replaces] = true
		}
		all = append(all, a)
	}
	delete(replaced, "")
	for _, a := range all {
		if l := a.limit; !a.override && l != nil && !l.unlimited {
			if a.limit = nil; !replaced[l.name] {
				a.limit, a.requests, a.counter = l, l.requests, a.text+"/HOUR"
				if l.share {
					a.counter = l.key + "=" + l.value + "/HOUR"
				}
			}
		}
	}
	return all
}

// count counts a call, and fills in what became of its descriptors.
func (r *reference) count(all []*asked) {
	if !r.together {
		for _, a := range all {
			if a.counter != "" {
				r.used[a.counter] += a.hits
				a.over, a.remaining = r.used[a.counter] > a.requests, a.requests-r.used[a.counter]
			}
		}
		return
	}
	type group struct {
		hits, least int64
		decides     bool
	}
	groups := map[string]*group{}
	for _, a := range all {
		if a.counter == "" {
			continue
		}
		g := groups[a.counter]
		if g == nil {
			g = &group{least: a.requests}
			groups[a.counter] = g
		}
		g.hits, g.least = g.hits+a.hits, min(g.least, a.requests)
		g.decides = g.decides || a.override || !a.limit.shadow
	}
	denied := false
	over := map[string]bool{}
	for counter, g := range groups {
		over[counter] = r.used[counter]+g.hits > g.least
		denied = denied || over[counter] && g.decides
	}
	for counter, g := range groups {
		if !over[counter] && (!denied || !g.decides) {
			r.used[counter] += g.hits
		}
	}
	for _, a := range all {
		a.over, a.remaining = over[a.counter], a.requests-r.used[a.counter]
	}
}

// answer returns the answer to a call as [answerText] does.
func (r *reference) answer(in *rls.RateLimitRequest) string {
	all := r.asks(in)
	r.count(all)
	var b strings.Builder
	var header *asked
	over, quotas, left := false, 0, 0
	for _, a := range all {
		if !a.override && a.limit != nil && a.limit.shadow {
			a.over = false
		}
		a.remaining = max(a.remaining, 0)
		if a.over {
			a.remaining = 0
		}
		fmt.Fprint(&b, map[bool]string{false: "  OK", true: "  OVER_LIMIT"}[a.over])
		switch {
		case a.counter != "":
			fmt.Fprintf(&b, " %d of %d", a.remaining, a.requests)
			if header == nil || a.remaining < header.remaining {
				header = a
			}
		case a.limit != nil:
			fmt.Fprint(&b, " ", uint32(math.MaxUint32))
		}
		b.WriteByte('\n')
		switch {
		case r.quota, !a.override && a.counter != "" && a.limit.quota:
			if quotas++; !a.over {
				left++
			}
		case a.over:
			over = true
		}
	}
	for _, a := range all {
		if a.over && !r.quota && (a.override || !a.limit.quota) {
			header = a
		}
	}
	if header != nil && r.headers {
		fmt.Fprintf(&b, "%d of %d\n", header.remaining, header.requests)
	}
	if (over || quotas > 0 && left == 0) && !r.shadow {
		return "OVER_LIMIT\n" + b.String()
	}
	return "OK\n" + b.String()
}

// answerText returns what the model says of an answer.
func answerText(out *rls.RateLimitResponse) string {
	var b strings.Builder
	fmt.Fprintln(&b, out.OverallCode)
	for _, s := range out.Statuses {
		fmt.Fprint(&b, "  ", s.Code)
		if l := s.CurrentLimit; l != nil {
			fmt.Fprintf(&b, " %d of %d", s.LimitRemaining, l.RequestsPerUnit)
		} else if s.LimitRemaining > 0 {
			fmt.Fprint(&b, " ", s.LimitRemaining)
		}
		b.WriteByte('\n')
	}
	if h := out.ResponseHeadersToAdd; len(h) > 0 {
		fmt.Fprintf(&b, "%s of %s\n", h[1].Value, h[0].Value)
	}
	return b.String()
}
