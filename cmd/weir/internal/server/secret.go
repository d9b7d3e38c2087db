package server

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// leastKeep is how long receipts are valid at least after the secret was rotated.
const leastKeep = 24 * time.Hour

// holds notes the longest hold of rules that are in force.
func (c *backends) holds(rules *rule.Set) {
	for i := range rules.Len() {
		r := rules.Rule(i)
		length := r.Hold
		if r.Window.Kind == window.KindHeld {
			length = r.Window.Length
		}
		for {
			longest := c.longestHold.Load()
			if int64(length) <= longest || c.longestHold.CompareAndSwap(longest, int64(length)) {
				break
			}
		}
	}
}

// rotate rotates the secret of receipts. It returns until when receipts of before are
// valid: for the longest hold that a rule had since the start of the service, and at
// least for a day.
func (c *backends) rotate(ctx context.Context) (until time.Time, err error) {
	where := c.local.Store()
	if c.shared != nil {
		where = c.shared
	}
	keep := max(leastKeep, time.Duration(c.longestHold.Load()))
	until = time.Now().Add(keep)
	return until, hook.Of(where).Keyed.RotateSecret(ctx, keep)
}

// rotateSecret rotates the secret of receipts.
func (a *admin) rotateSecret(w http.ResponseWriter, r *http.Request) {
	until, err := a.rules.backends.rotate(r.Context())
	if err != nil {
		a.rules.log.Error("the secret of receipts was not rotated", "error", err)
		(&answer.Problem{Status: http.StatusServiceUnavailable, Detail: err.Error()}).Write(w)
		return
	}
	text := until.UTC().Format(time.RFC3339)
	a.rules.log.Info("the secret of receipts was rotated", "old_valid_until", text)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"old_valid_until":"` + text + "\"}\n")) // an error means that the caller is gone
}
