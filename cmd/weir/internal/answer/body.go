package answer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/weirhq/weir/cmd/weir/internal/sizes"
)

// smallBody is the size, in bytes, up to which bodies are not counted as memory.
const smallBody = 64 << 10

// Context returns the context in which r is decided. Over HTTP/1, some clients close their side of the
// connection behind the request, as nc -N does, and wait for the answer. To net/http they have gone, so the
// context has no end: the time-out of the store ends a call.
func Context(r *http.Request) context.Context {
	if r.ProtoMajor == 1 {
		return context.WithoutCancel(r.Context())
	}
	return r.Context()
}

var tooLarge = &Problem{Status: http.StatusRequestEntityTooLarge, Detail: "the body is larger than 1 MiB"}

// ReadBody reads the body of r, which must be small enough, into b. It calls reserve for the memory
// of a large one as that arrives, so that a client that only announces a body reserves nothing.
func ReadBody(r *http.Request, b []byte, reserve func(n int64) error) ([]byte, error) {
	if r.ContentLength > sizes.Message {
		return b, tooLarge
	}
	for reserved := 0; ; {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if len(b) > sizes.Message {
			return b, tooLarge
		}
		if len(b) > max(smallBody, reserved) {
			more := (len(b) - reserved + smallBody - 1) / smallBody * smallBody
			if err := reserve(int64(more)); err != nil {
				return b, err
			}
			reserved += more
		}
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return b, &Problem{Status: http.StatusRequestTimeout, Detail: "timeout while reading the body"}
		case err != nil:
			return b, &Problem{Status: http.StatusBadRequest, Detail: "the body ends early: " + err.Error()}
		}
	}
}

// Refuse answers r with the problem of err. With HTTP/1 it first reads the rest of the body, up to the maximum size.
// Otherwise the connection would be reset while the client still sends, and the client would not see the answer.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody && r.Header["Expect"] == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, sizes.Message))
	}
	ProblemOf(err).Write(w)
}
