package answer

import (
	"encoding/json"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/audit"
)

// Audit is the answer to a call for the newest changes.
type Audit struct {
	Entries  []Change `json:"entries"`
	Degraded bool     `json:"degraded,omitempty"`
}

// Change is an entry of an [Audit].
type Change struct {
	Time   time.Time    `json:"time"`
	Action audit.Action `json:"action"`
	audit.Caller
	Rule       string            `json:"rule,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Before     json.RawMessage   `json:"before,omitempty"`
	After      json.RawMessage   `json:"after,omitempty"`
}

// ChangeOf returns e as an answer has it.
func ChangeOf(e *audit.Entry) Change {
	return Change{e.Time, e.Action, e.By, e.Rule, e.Attributes, e.Before, e.After}
}
