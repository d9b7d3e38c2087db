package grpcapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// A stream that sends nothing ends, and leaves its place to others, when the token of its caller is revoked.
func TestIdleStreamOfRevokedToken(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(access.Line("ann", "ann", access.Decide, "default") + "\n")
	synctest.Test(t, func(t *testing.T) {
		keys := scripttest.Keys(t, tokens)
		resources := &access.ResourceLimits{Memory: 1 << 30}
		c := inMemory(t, grpcserver.Config{Resources: resources, Auth: &access.Authenticator{Keys: keys}}, namespace.Only(engineOf(t, exported, memory(t))))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann")
		stream, err := c.Decide(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, memory := resources.Now(); memory == 0 {
			t.Error("got no memory reserved for the stream of a token that is valid")
		}
		write(access.Line("bob", "bob", access.Decide, "default") + "\n")
		if _, err := keys.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want Unavailable", err)
		}
		synctest.Wait()
		if _, memory := resources.Now(); memory != 0 {
			t.Errorf("got %d bytes reserved afterwards, want none", memory)
		}
	})
}

// An export whose reader is slow ends when the token of its caller is revoked, and leaves its place to others.
func TestExportOfRevokedToken(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	write := func(name string) {
		if err := os.WriteFile(tokens, []byte(access.Line(name, name, access.Read, "default")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ann")
	synctest.Test(t, func(t *testing.T) {
		e, keys, resources := engineOf(t, exported, memory(t)), scripttest.Keys(t, tokens), &access.ResourceLimits{Memory: 1 << 30}
		for i := range 20_000 {
			if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("team", fmt.Sprint("t", i), "plan", "basic", "tokens", "1")}); err != nil {
				t.Fatal(err)
			}
		}
		c := inMemory(t, grpcserver.Config{Resources: resources, Auth: &access.Authenticator{Keys: keys}}, namespace.Only(e))
		stream, err := c.Export(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann"), &weirv1.ExportRequest{Rule: "tokens"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		write("bob")
		if _, err := keys.Reload(); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			time.Sleep(time.Second)
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %v, want Unauthenticated", err)
		}
		synctest.Wait()
		if _, memory := resources.Now(); memory != 0 {
			t.Errorf("got %d bytes reserved afterwards, want none", memory)
		}
	})
}
