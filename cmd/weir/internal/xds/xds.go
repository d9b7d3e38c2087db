// Package xds receives the limits of envoyproxy/ratelimit from a management server, such as that
// of Envoy Gateway: resources of the type RateLimitConfig, on a stream of the aggregated discovery
// service (ADS) in the state-of-the-world variant of xDS.
package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/client/sotw/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	limits "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
)

// Client receives the limits of one management server.
type Client struct {
	// Config names the server, and how this process presents itself to it.
	Config config.XDS

	// Apply puts limits in force, a source for each resource. Its error is the reason for
	// which the server is told that they were refused. It is not called concurrently.
	Apply func(limits []envoyfile.Source) error

	// Log has a line when a stream ends, and when another one begins.
	Log *slog.Logger

	last    *sotw.Response // of all streams
	refusal string         // of it; empty: it is in force
}

// Run applies what the server sends until ctx is done. A stream that fails is followed by another one,
// on a connection of its own and after a growing delay, so that certificates that were
// replaced meanwhile are read again.
func (c *Client) Run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.RandomizationFactor = c.Config.RetryAfter, c.Config.MaxRetryAfter, c.Config.RetryJitter
	for {
		err := c.stream(ctx, func() {
			c.Log.Info("limits received from the xDS server", "server", c.Config.Server)
			wait.Reset()
		})
		if ctx.Err() != nil {
			return
		}
		delay := wait.NextBackOff()
		c.Log.Warn("no stream to the xDS server; the limits in force stay", "server", c.Config.Server, "retry", delay, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// keepalivePings is how often an idle connection is checked. Servers that do not allow more close
// connections with more than one ping in five minutes.
const keepalivePings = 6 * time.Minute

// stream applies what one stream brings, until it fails. It calls received after each message
// whose limits are in force.
func (c *Client) stream(ctx context.Context, received func()) error {
	secured, err := c.credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(c.Config.Server,
		grpc.WithTransportCredentials(secured),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.Config.MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepalivePings}))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, metadata.New(c.Config.Headers)))
	defer cancel()
	ads := sotw.NewADSClient(ctx, c.node(), resource.RateLimitConfigType)
	if err := ads.InitConnect(conn); err != nil {
		return err
	}
	for answered := (time.Time{}); ; answered = time.Now() {
		message, err := ads.Fetch()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause - time.Since(answered)):
		}
		again := c.last != nil && slices.EqualFunc(message.Resources, c.last.Resources, func(a, b *anypb.Any) bool { return proto.Equal(a, b) })
		if !again {
			c.last, c.refusal = message, ""
			if err := c.apply(message.Resources); err != nil {
				c.refusal = shortened(err.Error())
			}
		}
		if c.refusal != "" {
			err = ads.Nack(c.refusal)
		} else {
			if !again || answered.IsZero() {
				received()
			}
			err = ads.Ack()
		}
		if err != nil {
			return err
		}
	}
}

// pause is the least time between the answer to a message and the next message: some servers send the same, or two
// messages in turns, without end.
const pause = 500 * time.Millisecond

// Limits of a message. Rule files, too, are nested at most as deep, and the text of what is nested grows
// with the square of the depth.
const (
	maxNested      = 64
	maxDescriptors = 200_000
)

// apply puts the limits of resources in force.
func (c *Client) apply(resources []*anypb.Any) error {
	sources, descriptors := make([]envoyfile.Source, len(resources)), 0
	for i, r := range resources {
		var m limits.RateLimitConfig
		err := r.UnmarshalTo(&m)
		if err == nil {
			err = count(&descriptors, m.Descriptors, 1)
		}
		if err == nil {
			sources[i], err = c.source(&m)
		}
		if err != nil {
			return err
		}
	}
	return c.Apply(sources)
}

// count adds the number of descriptors in list, and of those below them, to n. It returns an error if
// there are too many, or if they are nested too deep.
func count(n *int, list []*limits.RateLimitDescriptor, depth int) error {
	switch *n += len(list); {
	case *n > maxDescriptors:
		return fmt.Errorf("too large: want at most %d descriptors", maxDescriptors)
	case depth > maxNested && len(list) > 0:
		return fmt.Errorf("descriptors are nested too deep: want at most %d", maxNested)
	}
	for _, d := range list {
		if err := count(n, d.Descriptors, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// source returns a resource as the text of a rule file, which has the same fields. It changes m.
func (c *Client) source(m *limits.RateLimitConfig) (envoyfile.Source, error) {
	if hasUnknown(m.ProtoReflect()) {
		c.Log.Warn("the xDS server sent fields that this version of weir does not know: they have no effect", "resource", m.Name)
	}
	s := envoyfile.Source{Name: m.Name}
	m.Name = ""
	text, err := protojson.MarshalOptions{UseProtoNames: true, Multiline: true}.Marshal(m)
	s.Text = text
	return s, err
}

// hasUnknown reports whether m, or a message in it, has a field that its type does not have.
func hasUnknown(m protoreflect.Message) (unknown bool) {
	_ = protorange.Range(m, func(v protopath.Values) error {
		if part, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok && len(part.GetUnknown()) > 0 {
			unknown = true
			return protorange.Terminate
		}
		return nil
	})
	return unknown
}

// node returns how this process presents itself.
func (c *Client) node() *core.Node {
	fields := map[string]*structpb.Value{}
	for name, value := range c.Config.Metadata {
		fields[name] = structpb.NewStringValue(value)
	}
	return &core.Node{Id: c.Config.Node, Metadata: &structpb.Struct{Fields: fields}}
}

// credentials returns those of a connection. It reads their files.
func (c *Client) credentials() (credentials.TransportCredentials, error) {
	x := &c.Config
	if !x.TLS {
		return insecure.NewCredentials(), nil
	}
	t := &tls.Config{ServerName: x.ServerName, MinVersion: tls.VersionTLS12}
	if x.Cert != "" {
		own, err := tls.LoadX509KeyPair(x.Cert, x.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for the xDS server: %w", err)
		}
		t.Certificates = []tls.Certificate{own}
	}
	if x.CA != "" {
		text, err := os.ReadFile(x.CA)
		if err != nil {
			return nil, fmt.Errorf("authorities of the xDS server: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authorities of the xDS server: %s: no certificate in PEM", x.CA)
		}
	}
	return credentials.NewTLS(t), nil
}

// mostReason is the maximum length of the reason in a refusal.
const mostReason = 4 << 10

// shortened returns text as the reason of a refusal.
func shortened(text string) string {
	if len(text) > mostReason {
		text = text[:mostReason] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD") // what a message of gRPC can have
}
