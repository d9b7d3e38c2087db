package answer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// BeginExport begins an export of keys of ns for a caller. The caller calls end when it is done.
func BeginExport(ns *namespace.Namespace, caller *access.Holder) (end func(), err error) {
	end, ok := ns.BeginExport(caller.Share())
	if !ok {
		return nil, &Problem{Status: http.StatusTooManyRequests, Detail: "too many exports of this namespace are under way", RetryAfter: 5 * time.Second}
	}
	return end, nil
}

// errLost ends the answer to a caller that may not have the rest of it.
var errLost = &Problem{Status: http.StatusForbidden, Detail: "the namespace is gone, or the caller has other rights than at the beginning"}

// Again authenticates the caller of a long answer about ns again, who was before when the answer began: tokens and namespaces may
// have changed. The answer must end if there is an error.
func Again(auth *access.Authenticator, r *http.Request, ns *namespace.Namespace, before *access.Holder) error {
	now, err := auth.Authenticate(access.CredentialsOf(r), access.Read)
	if err == nil && (ns.Gone() || now.Share() != before.Share()) {
		err = errLost
	}
	return err
}

// Stream begins an answer of server-sent events, whose parts are sent by [Send]. The caller calls end after the last one.
func Stream(w http.ResponseWriter, within time.Duration) (end func()) {
	to := http.NewResponseController(w)
	_ = to.SetReadDeadline(time.Time{}) // which would end the context of the request
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	return func() { _ = to.SetWriteDeadline(time.Now().Add(within)) }
}

// Send sends a part of a long answer within a time. The deadline ends with the write: over HTTP/2 a later one would reset the
// stream, although nothing is written. The caller gives the connection another one at the end of the answer.
func Send(w http.ResponseWriter, part []byte, within time.Duration) error {
	to := http.NewResponseController(w)
	_ = to.SetWriteDeadline(time.Now().Add(within))
	if _, err := w.Write(part); err != nil {
		return err
	}
	err := to.Flush()
	_ = to.SetWriteDeadline(time.Time{})
	return err
}

// Place returns the text that callers name the place by where an export of a rule ended.
func Place(rule string, closed bool, next []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(mark(rule, closed), next...))
}

// maxPlace is the maximum length of a place, in bytes: it can have the name of a host.
const maxPlace = 300

// ParsePlace reads a text that [Place] has made for the same rule.
func ParsePlace(rule string, closed bool, text string) (next []byte, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) > maxPlace {
		return nil, false
	}
	return bytes.CutPrefix(b, mark(rule, closed))
}

// mark returns what the places of exports of one rule and period begin with.
func mark(rule string, closed bool) []byte {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, closed, rule)
	return h.Sum(nil)
}
