package envoyrls_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const perUser = `rules:
  - {name: per-user, per: [user], limit: 5, window: 1h}
`

func newAPI(t testing.TB, rules string) (*envoyrls.API, *weir.Engine) {
	t.Helper()
	engine, _ := scripttest.NewEngine(t, rules, func() window.Instant { return window.At(scripttest.Start) })
	return envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}}), engine
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	api, engine := newAPI(t, perUser)
	entries := func(n int) (all []*common.RateLimitDescriptor_Entry) {
		for i := range n {
			all = append(all, &common.RateLimitDescriptor_Entry{Key: fmt.Sprint("k", i), Value: "v"})
		}
		return all
	}
	descriptors := func(n int) (all []*common.RateLimitDescriptor) {
		for range n {
			all = append(all, &common.RateLimitDescriptor{Entries: entries(1)})
		}
		return all
	}
	for want, in := range map[string]*rls.RateLimitRequest{
		"descriptors: are 10000: want at most 1000":          {Domain: "d", Descriptors: descriptors(10_000)},
		"descriptors[0].entries: are 10000: want at most 64": {Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: entries(10_000)}}},
		"domain: has 1048576 bytes: want at most 1024":       {Domain: strings.Repeat("d", 1<<20), Descriptors: descriptors(1)},
		"descriptors[0].entries[0].key: has 1025 bytes: want at most 1024": {
			Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: strings.Repeat("k", 1025)}}}},
		},
	} {
		_, inJSON := api.Answer(t.Context(), namespaceOf(engine), in)
		message := marshal(t, in)
		for way, err := range map[string]error{
			"read": inJSON, "message": envoyrls.Call(t.Context(), api, namespaceOf(engine), message), "before decoding": envoyrls.Excess(message),
		} {
			if way == "before decoding" && !strings.Contains(want, ": are ") {
				continue // lengths are found afterwards
			}
			if s := status.Convert(grpcserver.Error(err)); s.Code() != codes.InvalidArgument || s.Message() != want {
				t.Errorf("%s: got %v: %s, want InvalidArgument: %s", way, s.Code(), s.Message(), want)
			}
		}
	}
	if _, err := api.Answer(t.Context(), namespaceOf(engine), &rls.RateLimitRequest{Domain: "d", Descriptors: descriptors(1000)}); err != nil {
		t.Errorf("a thousand descriptors: got %v", err)
	}
}

// What a proxy's clients choose can make descriptors count in more counters than a store over the network decides
// at a time. They are denied, because an error could let the request pass, and count nothing.
func TestTooManyCounters(t *testing.T) {
	t.Parallel()
	rules := "rules:\n"
	for i := range 10 {
		rules += fmt.Sprintf("  - {name: r%d, when: {a: x}, per: [user], limit: 5, window: 1h}\n", i)
	}
	engine := scripttest.Engine(t, scripttest.Rules(t, rules), weir.WithStore(storetest.NewModel().Store))
	api := envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}})
	for n, want := range map[int]rls.RateLimitResponse_Code{101: rls.RateLimitResponse_OVER_LIMIT, 100: rls.RateLimitResponse_OK} {
		in := &rls.RateLimitRequest{Domain: "d"}
		for i := range n {
			in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: "a", Value: "x"}, {Key: "user", Value: fmt.Sprint(n, "-", i)}},
			})
		}
		out, err := api.Answer(t.Context(), namespaceOf(engine), in)
		if err != nil || out.OverallCode != want || len(out.Statuses) != n {
			t.Fatalf("%d descriptors: got %v with %d statuses, and error %v, want %v", n, out.GetOverallCode(), len(out.GetStatuses()), err, want)
		}
		u, err := engine.Usage(t.Context(), "r0", weir.Attributes("user", fmt.Sprint(n, "-0")))
		if counted := u.Used == 1; err != nil || counted != (want == rls.RateLimitResponse_OK) {
			t.Errorf("%d descriptors: got %d hits counted and error %v", n, u.Used, err)
		}
	}
}

// FuzzCall makes calls of any bytes: each gets an answer with one status for each
// descriptor, or an error with a code.
func FuzzCall(f *testing.F) {
	for _, in := range []*rls.RateLimitRequest{
		{}, {Domain: "d"},
		{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}}}, HitsAddend: 3},
		{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "user"}}, IsNegativeHits: true,
			Limit: &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: 3},
		}}},
	} {
		b, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	api, engine := newAPI(f, perUser)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &rls.RateLimitRequest{}
		if proto.Unmarshal(b, in) != nil {
			return
		}
		out, err := api.Answer(t.Context(), namespaceOf(engine), in)
		if err != nil {
			if c := status.Code(grpcserver.Error(err)); c != codes.InvalidArgument && c != codes.ResourceExhausted {
				t.Fatalf("got %v", err)
			}
			return
		}
		if len(out.Statuses) != len(in.Descriptors) {
			t.Fatalf("got %d statuses, want %d", len(out.Statuses), len(in.Descriptors))
		}
		over := false
		for _, s := range out.Statuses {
			if s.Code == rls.RateLimitResponse_UNKNOWN {
				t.Fatalf("got status %v", s)
			}
			over = over || s.Code == rls.RateLimitResponse_OVER_LIMIT
		}
		if over != (out.OverallCode == rls.RateLimitResponse_OVER_LIMIT) && len(out.Statuses) == 1 {
			t.Fatalf("got %v", out)
		}
		if _, err := proto.Marshal(out); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzExcess compares what is found before a call is decoded with what is found afterwards.
func FuzzExcess(f *testing.F) {
	api, engine := newAPI(f, perUser)
	f.Add(uint16(1001), uint8(1), uint16(1), uint16(1), uint16(1))
	f.Add(uint16(30), uint8(65), uint16(1), uint16(1), uint16(100))
	f.Add(uint16(3), uint8(2), uint16(1025), uint16(8193), uint16(1))
	f.Add(uint16(2), uint8(1), uint16(5), uint16(8192), uint16(1024))
	f.Fuzz(func(t *testing.T, descriptors uint16, entries uint8, key, value, domain uint16) {
		in := &rls.RateLimitRequest{Domain: strings.Repeat("d", int(domain%1000))}
		d := &common.RateLimitDescriptor{}
		for range entries % 80 {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: strings.Repeat("k", int(key%1100)), Value: strings.Repeat("v", int(value%9000))})
		}
		for range descriptors % 1100 {
			in.Descriptors = append(in.Descriptors, d)
		}
		if proto.Size(in) > 1<<20 {
			return // gRPC refuses it
		}
		_, err := api.Answer(t.Context(), namespaceOf(engine), in)
		if early := envoyrls.Excess(marshal(t, in)); early != nil && (err == nil || err.Error() != early.Error()) && in.Domain != "" && key%1100 > 0 {
			t.Fatalf("got %v before it is read, and %v afterwards", early, err)
		}
	})
}

// Callers choose the lengths of the limits that come with calls, and each length takes memory of its own: a namespace
// has only some of them at a time.
func TestManyLengths(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, engine := newAPI(t, perUser)
		other, _ := scripttest.NewEngine(t, perUser, func() window.Instant { return window.At(scripttest.Start) })
		ask := func(engine any, seconds uint32) error {
			_, err := api.Answer(t.Context(), namespaceOf(engine), &rls.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}},
				Limit:   &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: types.RateLimitUnit_SECOND, UnitMultiplier: wrapperspb.UInt32(seconds)},
			}}})
			return err
		}
		for i := range uint32(256) {
			if err := ask(engine, 1000+i); err != nil {
				t.Fatal(err)
			}
		}
		const want = "weir: descriptors[0].limit: more than 256 different lengths are in use"
		if err := ask(engine, 999); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := ask(engine, 1000); err != nil {
			t.Errorf("a length in use: got %v", err)
		}
		if err := ask(other, 999); err != nil {
			t.Errorf("another namespace: got %v", err)
		}
		time.Sleep(2002 * time.Second) // the counters of the shortest ones have expired
		if err := ask(engine, 999); err != nil {
			t.Errorf("after the shortest one has expired: got %v", err)
		}
	})
}

// Callers choose the keys of the limits that come with calls, too: a part of the memory is for others.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	files, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte("domain: d\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}}]")}}, envoyfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := func() window.Instant { return window.At(scripttest.Start) }
	for name, c := range map[string]struct {
		rules *rule.Set
		by    *envoyrls.Reference
	}{
		"rules": {scripttest.Rules(t, perUser), nil},
		"files": {files.Set, &envoyrls.Reference{Files: func() *envoyfile.Config { return files }, Now: now}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := memstore.New(memstore.WithClock(now), memstore.WithMaxBytes(1<<20))
			t.Cleanup(func() { counts.Close() })
			engine := scripttest.Engine(t, c.rules, weir.WithStore(counts))
			api := envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}, Reference: c.by})
			admits := func(user string, own *common.RateLimitDescriptor_RateLimitOverride) bool {
				out, err := api.Answer(t.Context(), namespaceOf(engine), &rls.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{
					Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: user}}, Limit: own,
				}}})
				if err != nil {
					t.Fatal(err)
				}
				return out.OverallCode == rls.RateLimitResponse_OK
			}
			n := 0
			for own := (&common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: types.RateLimitUnit_YEAR}); admits(fmt.Sprint("own", n), own); n++ {
				if n == 1_000_000 {
					t.Fatal("got no denial for a million keys")
				}
			}
			for i := range 1000 {
				if !admits(fmt.Sprint("user", i), nil) {
					t.Fatalf("got user %d denied after %d keys with limits of their own", i, n)
				}
			}
		})
	}
}

var namespaces sync.Map // *weir.Engine → *namespace.Namespace

// namespaceOf returns the namespace that engine decides in, the same one each time. The argument may
// be a namespace itself.
func namespaceOf(engine any) *namespace.Namespace {
	if ns, ok := engine.(*namespace.Namespace); ok {
		return ns
	}
	ns, _ := namespaces.LoadOrStore(engine, namespace.New(namespace.Default, engine.(*weir.Engine), 0, nil))
	return ns.(*namespace.Namespace)
}
