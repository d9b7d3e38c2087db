package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Kind is what happened.
type Kind string

const (
	Trigger       Kind = "trigger"          // the hits of a key have reached the number of a trigger
	Near          Kind = "near"             // they are near the quota of a limit
	Denied        Kind = "denied"           // the first take of a key that a limit denies in a window
	Ban           Kind = "ban"              // a ban of a key began
	HoldExpired   Kind = "hold_expired"     // a hold ended that nobody settled, cancelled or renewed
	OverrideSet   Kind = "override_set"     // an override was set
	OverrideEnded Kind = "override_ended"   // an override has reached its end, or was removed
	OutageBegun   Kind = "outage_begun"     // a node of the store does not answer
	OutageEnded   Kind = "outage_ended"     // it answers again
	RulesChanged  Kind = "rules_changed"    // other rules came into force
	typePrefix         = "weir."            // of the type of a CloudEvent
	contentType        = "application/json" // of the data
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Trigger, Near, Denied, Ban, HoldExpired, OverrideSet, OverrideEnded, OutageBegun, OutageEnded, RulesChanged}
}

// ParseKinds reads names of kinds with commas between them.
func ParseKinds(text string) (kinds []Kind, unknown string) {
	for name := range strings.SplitSeq(text, ",") {
		k := Kind(strings.TrimSpace(name))
		if !slices.Contains(Kinds(), k) {
			return nil, string(k)
		}
		kinds = append(kinds, k)
	}
	return kinds, ""
}

// Names returns the names of all kinds, with commas between them.
func Names() string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// Event is something that happened. It is immutable.
type Event struct {
	ID   string
	Kind Kind
	Time time.Time
	Data

	text []byte // as a CloudEvent in JSON
}

// Data is what an event says, as JSON has it. A field that does not apply is left out.
type Data struct {
	Namespace string `json:"namespace,omitempty"` // empty: the event concerns the whole service
	Rule      string `json:"rule,omitempty"`
	Key       string `json:"key,omitempty"` // as --log-keys shows keys
	Shadow    bool   `json:"shadow,omitempty"`

	Hits  int64  `json:"hits,omitempty"` // of the request, or of the hold that ended
	Used  *int64 `json:"used,omitempty"`
	Quota *int64 `json:"quota,omitempty"` // or the number of a trigger

	Until  *time.Time `json:"until,omitempty"`  // the end of a ban or of an override
	Note   string     `json:"note,omitempty"`   // of an override
	By     string     `json:"by,omitempty"`     // who set an override
	Node   string     `json:"node,omitempty"`   // of the store
	Reason string     `json:"reason,omitempty"` // of an outage
	Hash   string     `json:"hash,omitempty"`   // of the rules in force; empty: the namespace is gone
	Before string     `json:"before,omitempty"` // the hash of the rules before

	Instance string `json:"instance"` // the process that noticed the event
}

// cloudEvent is the JSON of an event: CloudEvents 1.0, in the structured mode.
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject,omitempty"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Data        *Data     `json:"data"`
}

// JSON returns e as a CloudEvent. The caller must not change it.
func (e *Event) JSON() []byte { return e.text }

// encode sets the text of e.
func (e *Event) encode() {
	source := "/weir"
	if e.Namespace != "" {
		source += "/" + e.Namespace
	}
	subject := e.Rule
	if e.Key != "" {
		subject += "/" + e.Key
	}
	e.text, _ = json.Marshal(cloudEvent{ // has no values that cannot be encoded
		"1.0", e.ID, source, typePrefix + string(e.Kind), subject, e.Time.UTC().Truncate(time.Microsecond), contentType, &e.Data,
	})
}

// decode returns the event with a text.
func decode(text string) (*Event, error) {
	e := &Event{text: []byte(text)}
	c := cloudEvent{Data: &e.Data}
	if err := json.Unmarshal(e.text, &c); err != nil {
		return nil, err
	}
	e.ID, e.Kind, e.Time = c.ID, Kind(strings.TrimPrefix(c.Type, typePrefix)), c.Time
	return e, nil
}

// order names what events are delivered in order for.
func (e *Event) order() string { return e.Namespace + "\x00" + e.Rule + "\x00" + e.Key }

// idOf returns the id of an event of a kind with the parts that tell it from all others. With a secret, they cannot be
// guessed from the id.
func idOf(secret []byte, kind Kind, parts ...string) string {
	h := sha256.New()
	if len(secret) > 0 {
		h = hmac.New(sha256.New, secret)
		h.Write([]byte("event")) // so that no event has the seal of a receipt
	}
	for _, p := range append(parts, string(kind)) {
		h.Write(binary.AppendUvarint(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Filter selects events. Its zero value selects those of the whole service only.
type Filter struct {
	Namespace string // the only one
	Whole     bool   // also events that concern the whole service
	Kinds     []Kind // nil: all
	Rule, Key string // empty: all

	// Share names those with whom the reader shares its part of the streams; see [access.Holder.Share].
	Share string
}

// Matches reports whether f selects e.
func (f *Filter) Matches(e *Event) bool {
	switch {
	case e.Namespace == "" && !f.Whole, e.Namespace != "" && e.Namespace != f.Namespace,
		f.Rule != "" && f.Rule != e.Rule, f.Key != "" && f.Key != e.Key:
		return false
	}
	return f.Kinds == nil || slices.Contains(f.Kinds, e.Kind)
}
