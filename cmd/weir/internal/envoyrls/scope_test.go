package envoyrls_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// A call with a refund needs the scope record, too, over gRPC and in JSON.
func TestRefundNeedsScope(t *testing.T) {
	t.Parallel()
	api, engine := newAPI(t, perUser)
	keys := scripttest.Keys(t, "",
		access.Own{Name: "proxy", Token: "proxy", Scopes: access.Decide},
		access.Own{Name: "shop", Token: "shop", Scopes: access.Decide | access.Record},
	)
	auth := &access.Authenticator{Keys: keys, Reach: access.ReachNamed}

	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpcserver.New(grpcserver.Config{Auth: auth})
	s.Add(envoyrls.Service, envoyrls.File, api.Methods())
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	one := []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}
	take := &rls.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: one}}}
	refund := &rls.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: one}, {Entries: one, IsNegativeHits: true}}}
	for _, tc := range []struct {
		token  string
		in     *rls.RateLimitRequest
		code   codes.Code
		status int
		used   int64 // after both calls
	}{
		{"proxy", take, codes.OK, http.StatusOK, 2},
		{"proxy", refund, codes.PermissionDenied, http.StatusForbidden, 2},
		{"shop", refund, codes.OK, http.StatusOK, 2},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tc.token)
		if _, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, tc.in); status.Code(err) != tc.code {
			t.Errorf("%s: %v: got %v, want %v", tc.token, tc.in, err, tc.code)
		}
		text, err := protojson.Marshal(tc.in)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(string(text)))
		r.Header.Set("Authorization", "Bearer "+tc.token)
		w := httptest.NewRecorder()
		api.HTTP(auth, nil).ServeHTTP(w, r)
		if w.Code != tc.status {
			t.Errorf("%s: %s: got %d %s, want %d", tc.token, text, w.Code, w.Body, tc.status)
		}
		if u, err := engine.Usage(t.Context(), "per-user", weir.Attributes("user", "ann")); err != nil || u.Used != tc.used {
			t.Errorf("%s: %s: got %d hits, %v, want %d", tc.token, text, u.Used, err, tc.used)
		}
	}
}
