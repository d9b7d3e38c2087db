package connectlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weirhq/weir"
	connectlimit "github.com/weirhq/weir/contrib/connect"
)

// Each address may make one call a minute.
func Example() {
	calls := weir.MustLimiter(weir.Sliding(1, time.Minute))
	defer calls.Close()
	limit := connectlimit.Must(connectlimit.Keys(calls, connectlimit.PeerIP))

	ping := func(_ context.Context, _ *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(&emptypb.Empty{}), nil
	}
	mux := http.NewServeMux()
	mux.Handle("/ping.Ping/Ping", connect.NewUnaryHandler("/ping.Ping/Ping", ping, connect.WithInterceptors(limit)))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+"/ping.Ping/Ping")
	for range 2 {
		_, err := client.CallUnary(context.Background(), connect.NewRequest(&emptypb.Empty{}))
		fmt.Println(err != nil && connect.CodeOf(err) == connect.CodeResourceExhausted)
	}
	// Output:
	// false
	// true
}
