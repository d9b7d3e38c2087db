package connectlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	connectlimit "github.com/weirhq/weir/contrib/connect"
)

// Each address may make one call a minute.
func Example() {
	limit := connectlimit.PerIP(1, time.Minute)

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
