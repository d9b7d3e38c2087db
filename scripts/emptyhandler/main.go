// Command emptyhandler answers every request with nothing: what HTTP itself
// costs, to compare the service with.
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
