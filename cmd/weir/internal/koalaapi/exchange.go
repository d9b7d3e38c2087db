package koalaapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// An exchange holds the memory of one call.
type exchange struct {
	namespace *namespace.Namespace
	item      [1]weir.Item
	out       []byte
	memory    access.Reservation // until the answer is written
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
	_, err := x.namespace.Run(a.config.Context, x.item[:], run.Options{})
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

// What koala says in the header of each answer.
const (
	serverName  = "Koala-Server"
	contentType = "text/html; charset=utf-8"
)

// computed is the size of the longest body, in bytes, whose length net/http computes.
const computed = 2000

func (x *exchange) write(w http.ResponseWriter, r *http.Request, answer reply) {
	h := w.Header()
	h.Set("Server", serverName)
	h.Set("Content-Type", contentType)
	h["Date"] = nil // koala sends no date
	switch {
	case h["Connection"] != nil: // the service is ending
	case r.Close || !asksToStay(r.Header["Connection"]):
		h.Set("Connection", "close")
	default:
		h.Set("Connection", "keep-alive")
	}
	if answer.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if len(answer.body) > computed {
		h.Set("Content-Length", strconv.Itoa(len(answer.body)))
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
