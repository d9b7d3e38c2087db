package envoyrls_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/window"
)

// TestNative runs scripts of calls under weir's rules:
//
//	rules [headers]              the rules, in YAML; counters begin anew
//	wait LENGTH                  lets time pass
//	call domain=NAME [hits=N]    one descriptor a line: key=value key=value
//
// Behind the entries of a descriptor, !hits=N, !negative and !limit=N/UNIT*TIMES
// set its other fields.
func TestNative(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/native/*.txt", func(t *testing.T, path string) {
		now := window.At(scripttest.Start)
		var api *envoyrls.API
		var engine *weir.Engine
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "rules":
				engine, _ = scripttest.NewEngine(t, d.Input, func() window.Instant { return now })
				format := headers.Format{Dialect: headers.None}
				if d.HasArg("headers") {
					format.Dialect = headers.Draft
				}
				api = envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: format})
				return ""
			case "wait":
				now = now.Add(d.Duration(t))
				return ""
			case "call":
				return call(t, api, engine, request(t, d))
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

// request reads a call.
func request(t *testing.T, d *datatest.TestData) *rls.RateLimitRequest {
	t.Helper()
	in := &rls.RateLimitRequest{}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "domain":
			in.Domain = arg.Vals[0]
		case "hits":
			in.HitsAddend = uint32(number(t, arg.Vals[0]))
		}
	}
	for line := range strings.Lines(d.Input) {
		desc := &common.RateLimitDescriptor{}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			if n, what, ok := strings.Cut(value, "×"); ok { // repeats: x×1000
				value = strings.Repeat(n, int(number(t, what)))
			}
			switch key {
			case "!hits":
				desc.HitsAddend = wrapperspb.UInt64(number(t, value))
			case "!negative":
				desc.IsNegativeHits = true
			case "!limit":
				desc.Limit = override(t, value)
			case "!none":
			default:
				desc.Entries = append(desc.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
			}
		}
		in.Descriptors = append(in.Descriptors, desc)
	}
	return in
}

// override reads N/UNIT or N/UNIT*TIMES.
func override(t *testing.T, text string) *common.RateLimitDescriptor_RateLimitOverride {
	t.Helper()
	n, unit, _ := strings.Cut(text, "/")
	unit, times, ok := strings.Cut(unit, "*")
	o := &common.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: uint32(number(t, n)), Unit: types.RateLimitUnit(types.RateLimitUnit_value[unit]),
	}
	if ok {
		o.UnitMultiplier = wrapperspb.UInt32(uint32(number(t, times)))
	}
	return o
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// call makes a call, and returns the answer as text.
func call(t *testing.T, api *envoyrls.API, engine *weir.Engine, in *rls.RateLimitRequest) string {
	t.Helper()
	out, err := api.Answer(t.Context(), namespaceOf(engine), in)
	if err != nil {
		s := status.Convert(grpcserver.Error(err))
		return fmt.Sprintf("%v: %s\n", s.Code(), s.Message())
	}
	if len(out.Statuses) != len(in.Descriptors) {
		t.Errorf("got %d statuses, want %d", len(out.Statuses), len(in.Descriptors))
	}
	var b strings.Builder
	fmt.Fprintln(&b, out.OverallCode)
	for _, s := range out.Statuses {
		fmt.Fprintf(&b, "  %v", s.Code)
		if l := s.CurrentLimit; l != nil {
			fmt.Fprintf(&b, " %d of %d", s.LimitRemaining, l.RequestsPerUnit)
			if l.Unit != 0 {
				fmt.Fprintf(&b, " per %v", l.Unit)
			}
			if l.UnitMultiplier != nil {
				fmt.Fprintf(&b, "*%d", l.UnitMultiplier.Value)
			}
			if l.Name != "" {
				fmt.Fprintf(&b, " (%s)", l.Name)
			}
		} else if s.LimitRemaining > 0 {
			fmt.Fprintf(&b, " %d", s.LimitRemaining)
		}
		if s.DurationUntilReset != nil {
			fmt.Fprintf(&b, ", reset after %v", s.DurationUntilReset.AsDuration())
		}
		b.WriteByte('\n')
	}
	for _, h := range out.RequestHeadersToAdd {
		fmt.Fprintf(&b, "request header %s: %s\n", h.Key, masked(h.Value))
	}
	for _, h := range out.ResponseHeadersToAdd {
		fmt.Fprintf(&b, "response header %s: %s\n", h.Key, h.Value)
	}
	if len(out.RawBody) > 0 {
		fmt.Fprintf(&b, "body %s\n", out.RawBody)
	}
	writeMetadata(&b, out)
	return b.String()
}

// masked hides what is random in a text.
func masked(text string) string {
	parts := strings.Split(text, ",")
	for i, p := range parts {
		if _, err := receipt.Parse(p); err == nil {
			parts[i] = "RECEIPT"
		}
	}
	return strings.Join(parts, ",")
}
