package envoyrls

import (
	"context"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	problems "github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
)

// HTTP returns a handler of calls in JSON: a RateLimitRequest in the body of a
// POST, a RateLimitResponse as the answer. Its status is 200 for OK and 429 for
// OVER_LIMIT. Errors are those of the HTTP API ([problems.Problem]). Nil resources have no limits.
func (a *API) HTTP(auth *access.Authenticator, resources *access.ResourceLimits) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, err := a.json(auth, resources, r)
		if err != nil {
			problems.Refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(body) // the caller has gone if this fails
	})
}

// json answers one call over HTTP.
func (a *API) json(auth *access.Authenticator, resources *access.ResourceLimits, r *http.Request) (status int, body []byte, err error) {
	if r.Method != http.MethodPost {
		return 0, nil, &problems.Problem{Status: http.StatusMethodNotAllowed, Detail: r.URL.Path + " does not accept " + r.Method + "; use POST", Allow: http.MethodPost}
	}
	if http.NewCrossOriginProtection().Check(r) != nil {
		return 0, nil, auth.Foreign()
	}
	caller, err := auth.Authenticate(access.CredentialsOf(r), access.Decide)
	if err != nil {
		return 0, nil, err
	}
	asked, err := namespace.Asked("", r.Header[namespace.Header])
	if err != nil {
		return 0, nil, err
	}
	ns, err := a.namespaces.Choose(auth, caller, asked)
	if err != nil {
		return 0, nil, err
	}
	x := &exchange{namespace: ns, Reservation: access.Reservation{Resources: resources, Caller: caller}}
	defer x.Free()
	text, err := problems.ReadBody(r, make([]byte, 0, 1<<10), func(n int64) error { return x.Reserve(textTimes * n) })
	if err != nil {
		return 0, nil, err
	}
	if err := a.parse(r.Context(), x, text); err != nil {
		return 0, nil, err
	}
	if err := caller.May(x.in.need()); err != nil {
		return 0, nil, err
	}
	if err := resources.Begin(); err != nil {
		return 0, nil, err
	}
	err = a.answer(problems.Context(r), x)
	resources.End()
	if err != nil {
		return 0, nil, err
	}
	if body, err = protojson.Marshal(&x.out); err != nil {
		return 0, nil, err
	}
	if x.out.OverallCode == rls.RateLimitResponse_OVER_LIMIT {
		return http.StatusTooManyRequests, body, nil
	}
	return http.StatusOK, body, nil
}

// parse reads a call in JSON. Only some large bodies are parsed at the same time, so that CPUs
// are left for other calls: one takes up to 50 ms.
func (a *API) parse(ctx context.Context, x *exchange, text []byte) error {
	if len(text) > smallMessage {
		select {
		case a.parsing <- struct{}{}:
			defer func() { <-a.parsing }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	grpcserver.ToValid(text)
	toValidEscapes(text)
	objects, err := excessJSON(text)
	if err != nil {
		return err
	}
	if n := int64(objects) * objectBytes; n > smallMessage {
		if err := x.Reserve(n); err != nil {
			return err
		}
	}
	var message rls.RateLimitRequest
	if err := protojson.Unmarshal(text, &message); err != nil {
		return fault.Newf("body", "not a RateLimitRequest in JSON: %.200s", err) // the error may repeat the whole text
	}
	x.in.set(&message)
	return nil
}

// toValidEscapes makes the escape of half of a surrogate pair, which no UTF-8 has, that of U+FFFD. JavaScript and Python write
// such halves, if a value has them.
func toValidEscapes(text []byte) {
	unit := func(at int) (r rune) {
		if at+6 <= len(text) && text[at] == '\\' && text[at+1] == 'u' {
			n, _ := strconv.ParseUint(string(text[at+2:at+6]), 16, 16)
			r = rune(n)
		}
		return r
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch r := unit(i); {
		case !utf16.IsSurrogate(r):
			i++ // what follows a backslash begins no escape
		case utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError:
			copy(text[i+2:], "fffd")
		default:
			i += 6
		}
	}
}

// The memory that reading a body or a message takes. textTimes is for each byte: the body, a
// copy of it if it is a message with bytes that are not UTF-8, and the texts in it. objectBytes is
// for each object: an entry is one of 80 bytes, a pointer to it, and an attribute, and slices have
// spare capacity.
const (
	textTimes   = 3
	objectBytes = 256
)

// excessJSON returns the fault of a body that exceeds a limit, as [check] does, and the number of
// its objects, before memory is allocated for them. It counts the objects of a call by their depth:
// descriptors at the third level of brackets, and entries at the fifth. Text that is not JSON may
// get either error.
func excessJSON(text []byte) (objects int, err error) {
	if len(text) < smallest {
		return 0, nil
	}
	depth, descriptors, entries := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			if text[i] == '[' {
				continue
			}
			objects++
			switch depth {
			case 3:
				descriptors++
				entries = 0
			case 5:
				entries++
			}
		case '}', ']':
			if depth--; depth == 2 && entries > maxEntries && err == nil {
				err = tooMany(at(descriptors-1, "entries"), entries, maxEntries)
			}
		}
	}
	if descriptors > maxDescriptors {
		return 0, tooMany("descriptors", descriptors, maxDescriptors)
	}
	return objects, err
}
