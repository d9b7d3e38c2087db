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
	"github.com/weirhq/weir/internal/answer"
)

// An exchange is the memory of one call. It is used again by later calls, so
// nothing in it may be kept: the request's strings are views of its body.
type exchange struct {
	body     []byte
	scan     scanner
	request  weir.Request
	decision weir.Decision
	out      []byte
}

var exchanges = sync.Pool{New: func() any { return &exchange{body: make([]byte, 0, 1<<10)} }}

// maxKept is the size, in bytes, above which an exchange's memory is not used again.
const maxKept = 64 << 10

func newExchange() *exchange { return exchanges.Get().(*exchange) }

// free gives x back.
func (x *exchange) free() {
	attributes := cap(x.request.Attributes) * int(unsafe.Sizeof(weir.Attribute{}))
	if cap(x.body)+cap(x.out)+cap(x.scan.text)+attributes <= maxKept {
		exchanges.Put(x)
	}
}

// read takes in r's body, once it is known to be JSON and small enough.
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
			return &answer.Problem{Status: http.StatusRequestTimeout, Detail: "the body came too slowly"}
		case err != nil:
			return &answer.Problem{Status: http.StatusBadRequest, Detail: "the body breaks off: " + err.Error()}
		}
	}
}

func tooLarge() *answer.Problem {
	return &answer.Problem{Status: http.StatusRequestEntityTooLarge, Detail: "the body is larger than 1 MiB"}
}

// isJSON says whether h announces JSON, or nothing, or what curl -d announces
// for everything.
func isJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) == 0 || values[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(values[0])
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "application/x-www-form-urlencoded")
}
