package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/run"
)

// An exchange is the memory of one call. Later calls use it again, so no part
// of it may be kept.
type exchange struct {
	caller    *access.Holder // nil: everyone, with all scopes
	space     *namespace.Namespace
	resources *access.ResourceLimits
	begun     bool                 // end must be called
	reserved  int64                // bytes of resources
	admit     func(run.Size) error // admitOne, made once
	body      []byte
	scan      scanner
	item      [1]weir.Item   // of a call about one request
	limits    headers.Limits // of a gate call
	out       []byte
}

var exchanges = sync.Pool{New: func() any {
	x := &exchange{body: make([]byte, 0, 1<<10)}
	x.admit = x.admitOne
	return x
}}

// maxKept is the size, in bytes, above which the memory of an exchange is
// dropped after the call.
const maxKept = 64 << 10

// attributeBytes is the size of an attribute: two strings.
const attributeBytes = 32

// newExchange returns an exchange from the pool.
func newExchange() *exchange { return exchanges.Get().(*exchange) }

// free returns x to the pool.
func (x *exchange) free() {
	x.end()
	if x.reserved > 0 {
		x.resources.Release(x.reserved)
		x.reserved = 0
	}
	x.caller, x.space, x.resources, x.scan.src = nil, nil, nil, ""
	attributes := cap(x.item[0].Request.Attributes) * attributeBytes
	if cap(x.body)+cap(x.out)+cap(x.scan.text)+attributes <= maxKept {
		exchanges.Put(x)
	}
}

// begin begins to decide a request. It follows read: a body that comes slowly
// holds nobody up.
func (x *exchange) begin() error {
	if err := x.resources.Begin(); err != nil {
		return err
	}
	x.begun = true
	return nil
}

// end ends what begin began, before the answer is written.
func (x *exchange) end() {
	if x.begun {
		x.begun = false
		x.resources.End()
	}
}

// reserve reserves n bytes until x is freed.
func (x *exchange) reserve(n int64) error {
	if err := x.resources.Reserve(n); err != nil {
		return err
	}
	x.reserved += n
	return nil
}

// escaped returns an error if the answer may be too large because a byte can take
// six in JSON: a control character does. The engine counts bytes as they are. A
// body without a backslash has no such characters.
func (x *exchange) escaped(s run.Size) error {
	if most := x.space.MaxAnswer(); most > 0 && s.Bytes()+5*s.Text > most && strings.IndexByte(x.scan.src, '\\') >= 0 {
		return run.ErrLarge
	}
	return nil
}

// admitOne reserves the memory of one decision, if it is large.
func (x *exchange) admitOne(s run.Size) error {
	if err := x.escaped(s); err != nil {
		return err
	}
	if n := int64(s.Usages)*usageBytes + s.Bytes(); n > smallAnswer {
		return x.reserve(n)
	}
	return nil
}

// reserveRules reserves the memory of an answer that lists n rules, if it is large.
func (x *exchange) reserveRules(n int) error {
	const each = 2 << 10
	if n*each > smallAnswer {
		return x.reserve(int64(n) * each)
	}
	return nil
}

// smallAnswer is the size, in bytes, up to which decisions are not counted as
// memory.
const smallAnswer = 64 << 10

// smallBody is the size, in bytes, up to which bodies are not counted as memory.
const smallBody = 64 << 10

// discard reads what is left of the body of a refused request, up to the largest
// body. Otherwise the connection would be reset while the client still sends, and
// the client would not see the answer.
func discard(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody && r.Header["Expect"] == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, sizes.Message))
	}
}

// read reads the body of r, which must be JSON and small enough.
func (x *exchange) read(r *http.Request) error {
	if !isJSON(r.Header) {
		return &answer.Problem{
			Status: http.StatusUnsupportedMediaType,
			Detail: fmt.Sprintf("the content type is %.100q, want application/json: send the header Content-Type: application/json", r.Header.Get("Content-Type")),
		}
	}
	if r.ContentLength > sizes.Message {
		return tooLarge()
	}
	if r.ContentLength > smallBody {
		if err := x.reserve(r.ContentLength); err != nil {
			return err
		}
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
		case len(b) > sizes.Message:
			return tooLarge()
		case len(b) > smallBody && x.reserved == 0:
			if err := x.reserve(sizes.Message); err != nil { // the length was not told
				return err
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
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
