// Command emptyhandler answers every request with an empty body. It measures the
// cost of HTTP itself, for comparison with the service.
//
//	emptyhandler ADDRESS [fixed]
//
// With "fixed" it reads the body of the request and answers with the same JSON each
// time, which has the size of a decision. That is the least that a handler has to do
// whose answer depends on the request.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

func main() {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if len(os.Args) > 2 && os.Args[2] == "fixed" {
		handler = fixed
	}
	log.Fatal(http.ListenAndServe(os.Args[1], handler)) //nolint:gosec // for measuring on loopback only
}

// bodies has buffers for bodies of requests.
var bodies = sync.Pool{New: func() any { return new([1 << 10]byte) }}

// The answer is that of POST /v1/take to a request that matches one rule.
var (
	answer = []byte(`{"allowed":true,"outcome":"allow","limits":[{"rule":"posts","key":"12345","quota":1000000,"used":1,"remaining":999999,"reset_after":3600}]}` + "\n")
	kind   = []string{"application/json"}
)

// fixed reads up to 1 KiB of the body and writes the answer.
func fixed(w http.ResponseWriter, r *http.Request) {
	b := bodies.Get().(*[1 << 10]byte)
	defer bodies.Put(b)
	if _, err := io.ReadFull(r.Body, b[:]); err == nil {
		http.Error(w, "the body has more than 1 KiB", http.StatusRequestEntityTooLarge)
		return
	}
	w.Header()["Content-Type"] = kind
	_, _ = w.Write(answer) // the caller has gone if this fails
}
