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

	"github.com/weirhq/weir"
	hertzlimit "github.com/weirhq/weir/contrib/hertz"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

func byUser(c *app.RequestContext) string { return string(c.GetHeader("X-User")) }

func withUser(c *app.RequestContext, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: byUser(c)})
}

func serve(t *testing.T, middleware app.HandlerFunc, wait func()) string {
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
	go h.Run()
	t.Cleanup(func() { h.Close() })
	return "http://" + l.Addr().String()
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Framework[app.HandlerFunc]{
		Serve: serve,
		Keys: func(l *weir.Limiter) app.HandlerFunc {
			return hertzlimit.Keys(l, byUser, hertzlimit.Options{Name: "visits"})
		},
		Own: func(l *weir.Limiter) app.HandlerFunc {
			return hertzlimit.Keys(l, byUser, hertzlimit.Options{
				Denied: func(c *app.RequestContext, call *guard.Call) error { c.String(418, call.Rule()); return nil },
				Failed: func(c *app.RequestContext, err error) error { c.Status(401); return err },
			})
		},
		Rules: func(e *weir.Engine) app.HandlerFunc { return hertzlimit.Rules(e, withUser) },
		PerIP: hertzlimit.PerIP,
		Nil: []func(*weir.Limiter, *weir.Engine){
			func(*weir.Limiter, *weir.Engine) { hertzlimit.Keys(nil, byUser) },
			func(l *weir.Limiter, _ *weir.Engine) { hertzlimit.Keys(l, nil) },
			func(*weir.Limiter, *weir.Engine) { hertzlimit.Rules(nil, withUser) },
			func(_ *weir.Limiter, e *weir.Engine) { hertzlimit.Rules(e, nil) },
		},
	})
}
