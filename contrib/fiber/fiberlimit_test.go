package fiberlimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiberlimit "github.com/weirhq/weir/contrib/fiber"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

func serve(t *testing.T, middleware fiber.Handler, wait func()) string {
	t.Helper()
	app := fiber.New()
	app.Use(middleware)
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
