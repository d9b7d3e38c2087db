package envoyrls_test

import (
	"fmt"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
)

// BenchmarkCall measures a call without gRPC: reading it, deciding it, and writing the
// answer.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{1, 10} {
		in := &rls.RateLimitRequest{Domain: "edge"}
		for i := range n {
			in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: fmt.Sprint("user-", i)}},
			})
		}
		message, err := proto.Marshal(in)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("descriptors=%d", n), func(b *testing.B) {
			api, engine := newAPI(b, "rules:\n  - {name: calls, when: {domain: edge}, per: [user], limit: 1000000000, window: 1h}\n")
			b.ReportAllocs()
			for b.Loop() {
				if err := envoyrls.Call(b.Context(), api, namespaceOf(engine), message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
