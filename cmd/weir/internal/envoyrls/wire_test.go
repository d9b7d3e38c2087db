package envoyrls_test

import (
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzRead reads any bytes: a call that package proto reads is the same call, and
// another one is an error.
func FuzzRead(f *testing.F) {
	e := []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}, {Key: "k"}}
	for _, in := range []*rls.RateLimitRequest{
		{}, {Domain: "d", HitsAddend: 1<<32 - 1}, {Domain: "d", Descriptors: []*common.RateLimitDescriptor{{}, {Entries: e}}},
		{Descriptors: []*common.RateLimitDescriptor{{Entries: e, HitsAddend: wrapperspb.UInt64(0)}, {HitsAddend: wrapperspb.UInt64(1 << 63), IsNegativeHits: true}}},
		{Descriptors: []*common.RateLimitDescriptor{{Entries: e, Limit: &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3}}}},
	} {
		f.Add(marshal(f, in))
	}
	f.Add([]byte("\x0a\x01\xff"))             // not UTF-8
	f.Add([]byte("\x30\x30"))                 // a field that does not exist
	f.Add([]byte("\x12\x04\x12\x02\x30\x30")) // one in the limit of a descriptor
	f.Add([]byte("\x18\xff\xff\xff\xff\x7f")) // a number that is cut
	x := envoyrls.NewExchange()
	f.Fuzz(func(t *testing.T, b []byte) {
		want := &rls.RateLimitRequest{}
		wrong := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, want)
		if envoyrls.Excess(b) != nil {
			return // more than a call may have: TestTooMany
		}
		if err := x.Read(b); (err == nil) != (wrong == nil) {
			t.Fatalf("%q: got %v, want %v", b, err, wrong)
		}
		if wrong == nil && !proto.Equal(x.In(), want) {
			t.Fatalf("%q:\ngot  %v\nwant %v", b, x.In(), want)
		}
	})
}

// FuzzWrite writes any answer: package proto reads the same one.
func FuzzWrite(f *testing.F) {
	f.Add(int32(1), uint32(3), uint32(5), int32(4), "posts", uint32(2), int64(60), uint8(7))
	f.Add(int32(2), uint32(1<<32-1), uint32(0), int32(0), "", uint32(0), int64(0), uint8(0))
	f.Fuzz(func(t *testing.T, code int32, left, quota uint32, unit int32, name string, times uint32, reset int64, parts uint8) {
		if code < 0 || unit < 0 || reset < 0 {
			return // no such answer
		}
		s := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_Code(code), LimitRemaining: left}
		out := &rls.RateLimitResponse{
			OverallCode: rls.RateLimitResponse_Code(code), Statuses: []*rls.RateLimitResponse_DescriptorStatus{s, {}},
		}
		if parts&1 > 0 {
			s.CurrentLimit = &rls.RateLimitResponse_RateLimit{RequestsPerUnit: quota, Unit: rls.RateLimitResponse_RateLimit_Unit(unit), Name: name}
			if parts&2 > 0 && times > 0 {
				s.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(times)
			}
		}
		if parts&4 > 0 {
			s.DurationUntilReset = &durationpb.Duration{Seconds: reset}
		}
		if parts&8 > 0 {
			out.RawBody = []byte(name)
			out.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(1)}}
		}
		want, err := proto.Marshal(out)
		if err != nil {
			return // a name that is not UTF-8
		}
		x := envoyrls.NewExchange()
		x.SetOut(out)
		if !proto.Equal(x.Message(), out) {
			t.Fatalf("got %v, want %v", x.Message(), out)
		}
		got, err := x.AppendMessage(nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := &rls.RateLimitResponse{}, &rls.RateLimitResponse{}
		if err := proto.Unmarshal(got, a); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(want, b); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(a, b) {
			t.Fatalf("got  %v\nwant %v", a, b)
		}
	})
}
