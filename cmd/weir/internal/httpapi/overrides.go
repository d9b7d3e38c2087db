package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// by returns who makes a call.
func (x *exchange) by(r *http.Request) audit.Caller {
	return namespace.CallerOf(x.Caller, r.RemoteAddr)
}

// errNoOverrides is the answer of a service without a place for overrides.
var errNoOverrides = &answer.Problem{Status: http.StatusNotFound, Detail: "overrides are kept by a running service: name one with --addr"}

// setOverride sets the limit of certain keys.
func (a *API) setOverride(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	o, f := x.scan.override(x.body)
	if f != nil {
		return f
	}
	if x.namespace.Kept().Overrides == nil {
		return errNoOverrides
	}
	set, err := x.namespace.SetOverride(answer.Context(r), x.by(r), o)
	if err != nil {
		return err
	}
	return x.respond(w, set.AppendJSON(x.out[:0]))
}

// override reads body as an override.
func (s *scanner) override(body []byte) (o overrides.Override, f *fault.Fault) {
	s.reset(body)
	f = s.fields(func(name string, at int) (f *fault.Fault) {
		switch name {
		case "rule":
			o.Rule, f = s.textOf("a name in quotes", sizes.Text)
		case "attributes":
			o.Attributes, f = s.attributes(nil)
		case "limit":
			o.Limit, f = s.whole()
		case "burst":
			if o.Burst, f = s.whole(); f == nil && o.Burst == 0 {
				f = s.fault(at, "is 0; leave it out for that of the rule")
			}
		case "until":
			o.Until, f = s.instant()
		case "note":
			o.Note, f = s.textOf("text in quotes", overrides.MaxNote)
		default:
			f = s.fault(at, "is unknown; an override has rule, attributes, limit, burst, until and note")
		}
		return f
	}, "rule", "attributes", "limit")
	return o, f
}

// fields reads a body that is an object: read reads the value of each name, which is there once, and
// needed are those that must be there.
func (s *scanner) fields(read func(name string, at int) *fault.Fault, needed ...string) *fault.Fault {
	seen, start := map[string]bool{}, s.pos
	f := s.object(func(name string, at int) *fault.Fault {
		f := read(name, at)
		if f == nil && seen[name] {
			f = s.twice(at)
		}
		seen[name] = true
		return f.In(name)
	})
	if f == nil {
		f = s.end()
	}
	for _, name := range needed {
		if f == nil && !seen[name] {
			f = s.missing(name, start)
		}
	}
	return f
}

// textOf reads a string of at most so many bytes, which may be kept.
func (s *scanner) textOf(want string, most int) (string, *fault.Fault) {
	text, at, f := s.quoted(want)
	if f == nil && len(text) > most {
		f = s.fault(at, "has %d bytes, more than %d", len(text), most)
	}
	return strings.Clone(text), f
}

// whole reads a number of hits.
func (s *scanner) whole() (int64, *fault.Fault) {
	text, at, f := s.numeral("a number")
	if f != nil {
		return 0, f
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > window.MaxHits {
		return 0, s.fault(at, "is %.64s; want a whole number from 0 to %d", text, window.MaxHits)
	}
	return n, nil
}

// instant reads an instant of RFC 3339.
func (s *scanner) instant() (time.Time, *fault.Fault) {
	text, at, f := s.quoted("an instant in quotes")
	if f != nil {
		return time.Time{}, f
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, s.fault(at, "is %.64q; want an instant such as 2026-12-01T00:00:00Z", text)
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

// removeOverride removes the override with a rule and attributes, if there is one.
func (a *API) removeOverride(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := oneKey(r)
	switch {
	case err != nil:
		return err
	case len(attrs) == 0:
		return badParameter("attributes", "are missing; name those of the override, as in ?rule=calls&customer=acme")
	case x.namespace.Kept().Overrides == nil:
		return errNoOverrides
	}
	if err := x.namespace.RemoveOverride(answer.Context(r), x.by(r), name, attrs); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// overrides lists the overrides in pages.
func (a *API) overrides(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, after := "", ""
	err := parametersOnce(r.URL.RawQuery, func(param, value string) error {
		switch param {
		case "rule":
			name = value
		case "after":
			text, err := base64.RawURLEncoding.DecodeString(value)
			if err != nil || len(text) == 0 {
				return badParameter(param, "want the next of an earlier answer")
			}
			after = string(text)
		default:
			return badParameter(param, "is unknown; want rule and after")
		}
		return nil
	})
	if err != nil {
		return err
	}
	book := x.namespace.Kept().Overrides
	if book == nil {
		return errNoOverrides
	}
	if err := x.reserveList(overrides.PageSize); err != nil {
		return err
	}
	p, err := book.List(r.Context(), x.namespace.Name(), x.namespace.Engine().Rules(), name, after)
	if err != nil {
		return err
	}
	b := append(x.out[:0], `{"overrides":[`...)
	for i := range p.Overrides {
		if i > 0 {
			b = append(b, ',')
		}
		if b = p.Overrides[i].AppendJSON(b); i%16 == 15 {
			if err := x.reserveText(len(b)); err != nil {
				return err
			}
		}
	}
	b = append(b, ']')
	if p.Next != "" {
		b = append(base64.RawURLEncoding.AppendEncode(append(b, `,"next":"`...), []byte(p.Next)), '"')
	}
	if p.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return x.respond(w, append(b, '}'))
}

// audit shows the newest changes, the newest one first.
func (a *API) audit(x *exchange, w http.ResponseWriter, r *http.Request) error {
	n, until := 50, time.Time{}
	err := parametersOnce(r.URL.RawQuery, func(param, value string) (err error) {
		switch param {
		case "n":
			if n, err = strconv.Atoi(value); err != nil || n < 1 || n > audit.MaxAsked {
				return badParameter(param, fmt.Sprintf("%.64q: want a number from 1 to %d", value, audit.MaxAsked))
			}
		case "until":
			if until, err = time.Parse(time.RFC3339, value); err != nil {
				return badParameter(param, fmt.Sprintf("%.64q: want an instant such as 2026-12-01T00:00:00Z", value))
			}
		default:
			return badParameter(param, "is unknown; want n and until")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := x.reserveList(n); err != nil {
		return err
	}
	found, err := x.namespace.Kept().Audit.List(r.Context(), x.namespace.Name(), n, until)
	if err != nil {
		return err
	}
	b := append(x.out[:0], `{"entries":[`...)
	for i := range found.Entries {
		if b, err = x.appendEntry(b, answer.ChangeOf(&found.Entries[i])); err != nil {
			return err
		}
	}
	b = append(b, ']')
	if found.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return x.respond(w, append(b, '}'))
}
