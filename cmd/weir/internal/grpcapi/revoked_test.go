package grpcapi_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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
