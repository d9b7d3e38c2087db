package fiberlimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/weirhq/weir"
	fiberlimit "github.com/weirhq/weir/contrib/fiber"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

func serve(t *testing.T, middleware fiber.Handler, wait func()) string {
	t.Helper()
	return serveAll(t, wait, middleware)
}

func serveAll(t *testing.T, wait func(), middleware ...any) string {
	t.Helper()
	app := fiber.New()
	app.Use(middleware...)
	app.Get("/", func(c fiber.Ctx) error {
		if c.Query("stream") == "" {
			return c.SendString("welcome")
		}
		return c.SendStreamWriter(func(w *bufio.Writer) {
			fmt.Fprint(w, "first")
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
			wait()
			fmt.Fprint(w, "second")
		})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		if err := errors.Join(app.Shutdown(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Framework[fiber.Handler, fiber.Ctx]{
		Serve:  serve,
		User:   func(c fiber.Ctx) string { return c.Get("X-User") },
		Denied: func(c fiber.Ctx, call *guard.Call) error { return c.Status(418).SendString(call.Rule()) },
		Failed: func(fiber.Ctx, error) error { return fiber.ErrUnauthorized },
		Keys:   fiberlimit.Keys, Rules: fiberlimit.Rules, PerIP: fiberlimit.PerIP,
	})
}

// Each middleware of a request settles what it holds when a body that is a stream has been written.
func TestTwoMiddlewares(t *testing.T) {
	t.Parallel()
	settled := make(guardtest.Settles, 2)
	e := guardtest.Engine(t, []rule.Rule{{Name: "exports", Quota: &rule.Quota{Value: 2}, Window: window.Held(time.Minute)}}, nil, weir.WithObserver(settled))
	none := func(_ fiber.Ctx, list []weir.Attribute) []weir.Attribute { return list }
	url := serveAll(t, func() {}, fiberlimit.Rules(e, none), fiberlimit.Rules(e, none))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?stream=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
	for range 2 {
		select {
		case <-settled:
		case <-time.After(time.Minute):
			t.Fatal("what a middleware held was not settled")
		}
	}
}
