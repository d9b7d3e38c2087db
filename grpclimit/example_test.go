package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/grpclimit"
)

// Each address may make one call a minute.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	server := grpc.NewServer(grpclimit.PerIP(1, time.Minute).ServerOptions()...)
	defer server.Stop()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()

	client := grpc_health_v1.NewHealthClient(conn)
	for range 2 {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		wait, denied := grpclimit.Wait(err)
		fmt.Println(status.Code(err), denied, wait.Round(time.Minute))
	}
	// Output:
	// OK false 0s
	// ResourceExhausted true 1m0s
}
