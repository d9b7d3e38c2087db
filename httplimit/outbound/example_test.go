package outbound_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/httplimit/outbound"
)

// Two requests an hour may go to a host. The third would have to wait for longer than a request may take.
func Example() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: outbound.PerHost(2, time.Hour), Timeout: time.Minute}
	for range 3 {
		answer, err := client.Get(server.URL)
		if err != nil {
			fmt.Println("not sent:", errors.Is(err, weir.ErrWouldWait))
			continue
		}
		_ = answer.Body.Close()
		fmt.Println(answer.Status)
	}
	// Output:
	// 404 Not Found
	// 404 Not Found
	// not sent: true
}
