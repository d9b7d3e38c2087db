package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/weirhq/weir"
)

// An exchange is the memory of one call, which later calls use again.
type exchange struct {
	request  weir.Request
	decision weir.Decision
	out      []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// maxKept is the size, in bytes, above which an exchange's memory is not used
// again.
const maxKept = 64 << 10

// free gives x back, without the request that its strings are parts of.
func (x *exchange) free() {
	attributes := x.request.Attributes[:cap(x.request.Attributes)]
	if len(attributes)*int(unsafe.Sizeof(weir.Attribute{}))+cap(x.out) > maxKept {
		return
	}
	clear(attributes)
	clear(x.decision.Usages[:cap(x.decision.Usages)]) // their keys are parts of it, too
	x.request = weir.Request{Attributes: attributes[:0]}
	exchanges.Put(x)
}

// read makes the request of a query.
func (x *exchange) read(query string) {
	x.request.Attributes = appendParameters(x.request.Attributes[:0], query)
}

// ask has e decide the request. It does not end with the client's side of the
// connection: one that has sent all it will may close it and wait for the
// answer, and net/http cannot tell it from one that has gone. Stores have
// time-outs of their own.
func (x *exchange) ask(e *weir.Engine, verb weir.Verb) error {
	return e.Do(context.Background(), verb, &x.request, &x.decision)
}

// parameter is the value of the query's parameter called name, the last one
// where there are several.
func (x *exchange) parameter(name string) string {
	for i := len(x.request.Attributes) - 1; i >= 0; i-- {
		if a := &x.request.Attributes[i]; a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Header values that all answers share, which saves slices for each.
var (
	serverName  = []string{"Koala-Server"}
	contentType = []string{"text/html; charset=utf-8"}
	connClose   = []string{"close"}
	connKeep    = []string{"keep-alive"}
)

// computed is the longest body, in bytes, whose length net/http finds out by
// itself.
const computed = 2000

func (x *exchange) write(w http.ResponseWriter, r *http.Request, answer reply) {
	h := w.Header()
	h["Server"] = serverName
	h["Content-Type"] = contentType
	h["Date"] = nil // koala sends none
	switch {
	case h["Connection"] != nil: // the service is ending
	case r.Close || !asksToStay(r.Header["Connection"]):
		h["Connection"] = connClose
	default:
		h["Connection"] = connKeep
	}
	if len(answer.body) > computed {
		h["Content-Length"] = []string{strconv.Itoa(len(answer.body))}
	}
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	}
	_, _ = w.Write(answer.body) // the caller has gone if this fails
}

// asksToStay says that a client wants its connection kept, which koala does for
// nobody and weir for those who ask.
func asksToStay(connection []string) bool {
	for _, list := range connection {
		for option := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(option), "keep-alive") {
				return true
			}
		}
	}
	return false
}
