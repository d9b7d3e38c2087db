package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/access"
	"github.com/weirhq/weir/internal/answer"
)

// An exchange is the memory of one call. Later calls use it again, so no part
// of it may be kept: the strings of the request are views of its body.
type exchange struct {
	caller   *access.Holder // nil: everyone, with all scopes
	body     []byte
	scan     scanner
	request  weir.Request
	decision weir.Decision
	out      []byte
}

var exchanges = sync.Pool{New: func() any { return &exchange{body: make([]byte, 0, 1<<10)} }}

// maxKept is the size, in bytes, above which the memory of an exchange is
// dropped after the call.
const maxKept = 64 << 10

// newExchange returns an exchange from the pool.
func newExchange() *exchange { return exchanges.Get().(*exchange) }

// free returns x to the pool.
func (x *exchange) free() {
	x.caller = nil
	attributes := cap(x.request.Attributes) * int(unsafe.Sizeof(weir.Attribute{}))
	if cap(x.body)+cap(x.out)+cap(x.scan.text)+attributes <= maxKept {
		exchanges.Put(x)
	}
}

// read reads the body of r, which must be JSON and small enough.
func (x *exchange) read(r *http.Request) error {
	if !isJSON(r.Header) {
		return &answer.Problem{
			Status: http.StatusUnsupportedMediaType,
			Detail: "the body must be application/json",
		}
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	b := x.body[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		x.body = b
		switch {
		case len(b) > maxBody:
			return tooLarge()
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return &answer.Problem{Status: http.StatusRequestTimeout, Detail: "timeout while reading the body"}
		case err != nil:
			return &answer.Problem{Status: http.StatusBadRequest, Detail: "the body ends early: " + err.Error()}
		}
	}
}

// tooLarge returns the answer to a body over the limit.
func tooLarge() *answer.Problem {
	return &answer.Problem{Status: http.StatusRequestEntityTooLarge, Detail: "the body is larger than 1 MiB"}
}

// isJSON reports whether h announces JSON, no type, or the type that curl -d
// announces for any body.
func isJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) == 0 || values[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(values[0])
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "application/x-www-form-urlencoded")
}
