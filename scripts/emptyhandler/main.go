// Command emptyhandler answers every request with an empty body. It measures the
// cost of HTTP itself, for comparison with the service.
package main

import (
	"log"
	"net/http"
	"os"
)

func main() {
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	log.Fatal(http.ListenAndServe(os.Args[1], empty)) //nolint:gosec // for measuring on loopback only
}
