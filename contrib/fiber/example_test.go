package fiberlimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v3"

	fiberlimit "github.com/weirhq/weir/contrib/fiber"
)

// Each client may send one request a minute.
func Example() {
	app := fiber.New()
	app.Use(fiberlimit.PerIP(1, time.Minute))
	app.Post("/posts", func(c fiber.Ctx) error { return c.SendStatus(http.StatusCreated) })

	for range 2 {
		answer, err := app.Test(httptest.NewRequest(http.MethodPost, "/posts", http.NoBody), fiber.TestConfig{})
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Body.Close()
		fmt.Println(answer.StatusCode, answer.Header.Get("RateLimit-Policy"))
	}
	// Output:
	// 201 "requests";q=1;w=60
	// 429 "requests";q=1;w=60
}
