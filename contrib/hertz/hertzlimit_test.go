package hertzlimit_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"

	hertzlimit "github.com/weirhq/weir/contrib/hertz"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

// serve serves until all ends, a test that t is a part of: netpoll closes the file descriptor of a listener twice, and the
// second time it can be that of a connection of another part.
func serve(all, t *testing.T, middleware app.HandlerFunc, wait func()) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := server.New(server.WithListener(l), server.WithExitWaitTime(time.Millisecond), config.Option{F: func(o *config.Options) { o.DisablePrintRoute = true }})
	h.Use(middleware)
	h.GET("/", func(_ context.Context, c *app.RequestContext) {
		if c.Query("stream") == "" {
			c.String(200, "welcome")
			return
		}
		r, w := io.Pipe()
		go func() {
			fmt.Fprint(w, "first")
			wait()
			fmt.Fprint(w, "second")
			w.Close()
		}()
		c.SetBodyStream(r, -1)
	})
	ended := make(chan error, 1)
	go func() { ended <- h.Run() }()
	all.Cleanup(func() {
		h.Close()
		if err := <-ended; err != nil {
			all.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Framework[app.HandlerFunc, *app.RequestContext]{
		Serve: func(part *testing.T, middleware app.HandlerFunc, wait func()) string {
			return serve(t, part, middleware, wait)
		},
		User:   func(c *app.RequestContext) string { return string(c.GetHeader("X-User")) },
		Denied: func(c *app.RequestContext, call *guard.Call) error { c.String(418, call.Rule()); return nil },
		Failed: func(c *app.RequestContext, err error) error { c.Status(401); return err },
		Keys:   hertzlimit.Keys, Rules: hertzlimit.Rules, PerIP: hertzlimit.PerIP,
	})
}
