package envoyrls

import (
	"errors"
	"io"
	"net/http"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/access"
	problems "github.com/weirhq/weir/internal/answer"
	"github.com/weirhq/weir/internal/namespace"
	"github.com/weirhq/weir/internal/sizes"
)

// HTTP returns a handler of calls in JSON: a RateLimitRequest in the body of a
// POST, a RateLimitResponse as the answer. Its status is 200 for OK and 429 for
// OVER_LIMIT. Errors are those of the HTTP API ([problems.Problem]).
func (a *API) HTTP(lock *access.Lock) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := a.json(lock, r)
		if err != nil {
			problems.ProblemOf(err).Write(w)
			return
		}
		body, err := protojson.Marshal(out)
		if err != nil {
			problems.ProblemOf(err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if out.OverallCode == rls.RateLimitResponse_OVER_LIMIT {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write(body) // the caller has gone if this fails
	})
}

// json answers one call over HTTP.
func (a *API) json(lock *access.Lock, r *http.Request) (*rls.RateLimitResponse, error) {
	if r.Method != http.MethodPost {
		return nil, &problems.Problem{Status: http.StatusMethodNotAllowed, Detail: r.URL.Path + " does not accept " + r.Method + "; use POST", Allow: http.MethodPost}
	}
	if http.NewCrossOriginProtection().Check(r) != nil {
		return nil, lock.Foreign()
	}
	caller, err := lock.Enter(r, access.Decide)
	if err != nil {
		return nil, err
	}
	asked, err := namespace.Asked("", r.Header[namespace.Header])
	if err != nil {
		return nil, err
	}
	space, err := a.spaces.Choose(lock, caller, asked)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, sizes.Message))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &problems.Problem{Status: http.StatusRequestEntityTooLarge, Detail: "the body is larger than 1 MiB"}
	case err != nil:
		return nil, &problems.Problem{Status: http.StatusBadRequest, Detail: "the body ends early: " + err.Error()}
	}
	in := &rls.RateLimitRequest{}
	if err := protojson.Unmarshal(body, in); err != nil {
		return nil, fault.Newf("body", "not a RateLimitRequest in JSON: %v", err)
	}
	return a.Answer(r.Context(), space.Engine(), in)
}
