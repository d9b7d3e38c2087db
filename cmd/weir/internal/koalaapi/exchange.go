package koalaapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// An exchange holds the memory of one call. Later calls reuse it.
type exchange struct {
	space *namespace.Namespace
	item  [1]weir.Item
	out   []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// maxKept is the size in bytes up to which the memory of an exchange is reused.
const maxKept = 64 << 10

// attributeBytes is the size of an attribute: two strings.
const attributeBytes = 32

// free makes x available to later calls, without references to the request.
func (x *exchange) free() {
	attributes := x.item[0].Request.Attributes[:cap(x.item[0].Request.Attributes)]
	if len(attributes)*attributeBytes+cap(x.out) > maxKept {
		return
	}
	clear(attributes)
	clear(x.item[0].Decision.Usages[:cap(x.item[0].Decision.Usages)]) // their keys refer to the request
	x.space, x.item[0].Request = nil, weir.Request{Attributes: attributes[:0]}
	exchanges.Put(x)
}

// read sets the attributes of the request from a query.
func (x *exchange) read(query string) {
	x.item[0].Request.Attributes = appendParameters(x.item[0].Request.Attributes[:0], query)
}

// ask lets the engine decide the request. It holds nothing: koala's clients keep no
// receipt.
func (a *API) ask(x *exchange, verb store.Verb) error {
	x.item[0].Request.Final = true
	x.item[0].Verb = verb
	_, err := x.space.Run(a.config.Context, x.item[:], run.Options{})
	return err
}

// parameter returns the value of the parameter with a name, the last one if
// there are several.
func (x *exchange) parameter(name string) string {
	for i := len(x.item[0].Request.Attributes) - 1; i >= 0; i-- {
		if a := &x.item[0].Request.Attributes[i]; a.Name == name {
			return a.Value
		}
	}
	return ""
}

// All answers share these header values, which saves an allocation each.
var (
	serverName  = []string{"Koala-Server"}
	contentType = []string{"text/html; charset=utf-8"}
	connClose   = []string{"close"}
	connKeep    = []string{"keep-alive"}
)

// computed is the size of the longest body, in bytes, whose length net/http computes.
const computed = 2000

func (x *exchange) write(w http.ResponseWriter, r *http.Request, answer reply) {
	h := w.Header()
	h["Server"] = serverName
	h["Content-Type"] = contentType
	h["Date"] = nil // koala sends no date
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
	_, _ = w.Write(answer.body) // an error means that the caller is gone
}

// asksToStay reports whether a client asks to keep its connection. koala never
// does so.
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
