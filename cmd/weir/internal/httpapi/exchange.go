package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/internal/run"
)

// An exchange is the memory of one call, and its caller. Later calls use it again, so no part
// of it may be kept.
type exchange struct {
	namespace *namespace.Namespace
	access.Reservation
	begun  bool                 // Resources.Begin has begun the request
	admit  func(run.Size) error // admitOne, made once
	body   []byte
	scan   scanner
	item   [1]weir.Item   // of a call about one request
	limits headers.Limits // of a gate call
	out    []byte         // the answer; empty at the beginning
	text   int            // of an answer, for which memory is reserved
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

// recycle frees what x has reserved, and returns x to the pool.
func (x *exchange) recycle() {
	x.endRequest()
	x.Free()
	x.Reservation, x.namespace, x.scan.src, x.text = access.Reservation{}, nil, "", 0
	x.out = x.out[:0] // it has an answer to somebody else
	attributes := cap(x.item[0].Request.Attributes) * attributeBytes
	if cap(x.body)+cap(x.out)+cap(x.scan.text)+attributes <= maxKept {
		exchanges.Put(x)
	}
}

// beginRequest begins a request, which endRequest ends.
func (x *exchange) beginRequest() error {
	err := x.Resources.Begin()
	x.begun = err == nil
	return err
}

// endRequest ends a request that is decided, before the answer is written: a client that reads
// slowly keeps no others away.
func (x *exchange) endRequest() {
	if x.begun {
		x.begun = false
		x.Resources.End()
	}
}

// options returns the options of a run for the body that was read. Only a text with escapes has characters that the
// answer escapes.
func (x *exchange) options(admit func(run.Size) error) run.Options {
	o := run.Options{Caller: x.Caller.Token(), Admit: admit}
	if len(x.scan.text) > 0 {
		o.Escapes = jsontext.Escapes
	}
	return o
}

// admitOne reserves the memory of one decision, if it is large.
func (x *exchange) admitOne(s run.Size) error {
	if n := int64(s.Usages)*usageMemory + s.Bytes(); n > smallAnswer {
		return x.Reserve(n)
	}
	return nil
}

// reserveExplanations reserves the memory of the explanations of n rules, if they are large. Their
// answer is written in parts.
func (x *exchange) reserveExplanations(n int) error {
	const each = 512
	if n*each > smallAnswer {
		return x.Reserve(int64(n) * each)
	}
	return nil
}

// reserveList reserves the memory of an answer that lists n entries, before they are read.
func (x *exchange) reserveList(n int) error {
	const each = 1 << 10
	return x.reserveText(n * each)
}

// reserveText reserves the memory of an answer that has n bytes so far, if it is large. It is kept
// until the client has read the answer.
func (x *exchange) reserveText(n int) error {
	if n <= max(smallAnswer, x.text) {
		return nil
	}
	more := (n - x.text + smallAnswer - 1) / smallAnswer * smallAnswer
	if err := x.Reserve(int64(more)); err != nil {
		return err
	}
	x.text += more
	return nil
}

// appendEntry appends v as JSON to the list with which b ends, and reserves the memory of the text.
func (x *exchange) appendEntry(b []byte, v any) ([]byte, error) {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	b = appendJSON(b, v)
	return b, x.reserveText(len(b))
}

// smallAnswer is the size, in bytes, up to which decisions are not counted as
// memory.
const smallAnswer = 64 << 10

// read reads the body of r, which must be JSON and small enough, and then begins to decide
// it: a body that comes slowly keeps no others away.
func (x *exchange) read(r *http.Request) error {
	if types := r.Header["Content-Type"]; len(types) > 0 && types[0] != "application/json" {
		kind, _, err := mime.ParseMediaType(types[0])
		if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") && kind != "application/x-www-form-urlencoded" { // as curl -d says of any body
			return &answer.Problem{
				Status: http.StatusUnsupportedMediaType,
				Detail: fmt.Sprintf("the content type is %.100q, want application/json: send the header Content-Type: application/json", types[0]),
			}
		}
	}
	var err error
	if x.body, err = answer.ReadBody(r, x.body[:0], x.Reserve); err != nil {
		return err
	}
	return x.beginRequest()
}

// respond ends the request, and writes body and a newline.
func (x *exchange) respond(w http.ResponseWriter, body []byte) error {
	x.endRequest()
	w.Header()["Content-Type"] = jsonType
	x.out = append(body, '\n')
	_, _ = w.Write(x.out) // an error means that the caller is gone
	return nil
}
