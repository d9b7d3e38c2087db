package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
)

// top shows the keys that use each rule most, and those that it denies most.
func (a *API) top(x *exchange, w http.ResponseWriter, r *http.Request) error {
	s, err := some(x.namespace, r, 10, false)
	if err != nil {
		return err
	}
	n := top.PerRule(s.n, len(s.rules))
	const keyBytes = 256
	if err := x.reserveText(2 * n * keyBytes); err != nil { // of one rule; more of the answer is added below
		return err
	}
	b := append(x.out[:0], `{"rules":[`...)
	for _, i := range s.rules {
		ru := s.set.Rule(i)
		t := x.namespace.Tops().Top(ru.Name, n)
		if !s.one && t.Used.Total == 0 && t.Denied.Total == 0 {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = jsontext.AppendText(append(b, `{"rule":`...), ru.Name)
		b = jsontext.AppendText(append(b, `,"kind":`...), ru.Kind().String())
		if ru.Mode == rule.Shadow {
			b = append(b, `,"shadow":true`...)
		}
		b = appendTime(append(b, `,"since":`...), t.Since)
		b = appendTop(append(b, `,"used":`...), "hits", &t.Used)
		b = append(appendTop(append(b, `,"denied":`...), "takes", &t.Denied), '}')
		if err := x.reserveText(len(b)); err != nil {
			return err
		}
	}
	return x.respond(w, append(strconv.AppendInt(append(b, `],"missed":`...), x.namespace.Tops().Missed(), 10), '}'))
}

// appendTop appends a list, whose counts have a name.
func appendTop(b []byte, counts string, l *top.List) []byte {
	number := func(b []byte, n int64) []byte {
		return strconv.AppendInt(append(append(append(b, '"'), counts...), `":`...), n, 10)
	}
	b = number(append(b, '{'), l.Total)
	b = strconv.AppendInt(append(b, `,"sample":`...), l.Sample, 10)
	b = strconv.AppendInt(append(b, `,"error":`...), l.Error, 10)
	b = append(b, `,"keys":[`...)
	for i := range l.Entries {
		if i > 0 {
			b = append(b, ',')
		}
		e := &l.Entries[i]
		b = jsontext.AppendText(append(b, `{"key":`...), e.Key)
		b = number(append(b, ','), e.Count)
		if e.Error > 0 {
			b = strconv.AppendInt(append(b, `,"error":`...), e.Error, 10)
		}
		if e.Override {
			b = append(b, `,"override":true`...)
		}
		b = append(b, '}')
	}
	return append(b, ']', '}')
}

// denials shows recent denials, the newest one first.
func (a *API) denials(x *exchange, w http.ResponseWriter, r *http.Request) error {
	s, err := some(x.namespace, r, 50, true)
	if err != nil {
		return err
	}
	rules, bad := x.namespace.Tops().Select(s.set, s.rules, s.attrs)
	if bad != nil {
		return badParameter(bad.Path, bad.Problem)
	}
	if err := x.reserveList(s.n); err != nil {
		return err
	}
	d, err := x.namespace.Tops().Denials(r.Context(), top.Query{Rules: rules, Since: s.since, N: s.n, Share: x.Caller.Share()})
	if err != nil {
		return err
	}
	b := append(x.out[:0], `{"denials":[`...)
	for i := range d.List {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDenial(b, &d.List[i])
	}
	b = append(b, ']')
	if !d.Oldest.IsZero() {
		b = appendTime(append(b, `,"oldest":`...), d.Oldest)
	}
	b = strconv.AppendInt(append(b, `,"dropped":`...), d.Dropped, 10)
	if d.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	if err := x.reserveText(len(b)); err != nil {
		return err
	}
	return x.respond(w, append(b, '}'))
}

func appendDenial(b []byte, d *top.Denial) []byte {
	b = appendTime(append(b, `{"time":`...), d.Time)
	b = jsontext.AppendText(append(b, `,"rule":`...), d.Rule)
	if d.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	numbers := d.Reason != top.ReasonVerdict && d.Reason != top.ReasonOutage
	if numbers {
		b = jsontext.AppendText(append(b, `,"key":`...), d.Key)
	}
	b = jsontext.AppendText(append(b, `,"reason":`...), string(d.Reason))
	b = jsontext.AppendText(append(b, `,"outcome":`...), d.Outcome)
	switch {
	case numbers:
		b = strconv.AppendInt(append(b, `,"hits":`...), d.Hits, 10)
		b = strconv.AppendInt(append(b, `,"used":`...), d.Used, 10)
		b = strconv.AppendInt(append(b, `,"quota":`...), d.Quota, 10)
	case d.Reason == top.ReasonOutage:
		b = jsontext.AppendText(append(b, `,"degraded_reason":`...), string(d.Cause))
	}
	if !d.BannedUntil.IsZero() {
		b = appendTime(append(b, `,"banned_until":`...), d.BannedUntil)
	}
	if d.Override {
		b = append(b, `,"override":true`...)
	}
	return append(jsontext.AppendSeconds(append(b, `,"retry_after":`...), d.RetryAfter), '}')
}

// asked has the parameters of a call about top keys or denials.
type asked struct {
	set   *rule.Set
	rules []int // indexes of the requested rules
	one   bool  // because it was named
	n     int
	since time.Time        // zero: no limit
	attrs []weir.Attribute // of the key
}

// some reads ?rule=NAME&n=10, where both may be missing, and with filters also
// &since=1h&attribute=value….
func some(ns *namespace.Namespace, r *http.Request, fallback int, filters bool) (s asked, err error) {
	if ns.Tops() == nil {
		return s, answer.NoTops()
	}
	s.set, s.n = ns.Engine().Rules(), fallback
	name := ""
	err = parametersOnce(r.URL.RawQuery, func(param, value string) (err error) {
		switch {
		case param == "rule":
			name, s.one = value, true
		case param == "n":
			if s.n, err = strconv.Atoi(value); err != nil || s.n < 1 || s.n > top.MaxAsked {
				return badParameter(param, fmt.Sprintf("%.64q: want a number from 1 to %d", value, top.MaxAsked))
			}
		case !filters:
			return badParameter(param, "is unknown; want rule and n")
		case param == "since":
			if s.since, err = ns.Tops().ParseSince(value); err != nil {
				return badParameter(param, err.Error())
			}
		default:
			s.attrs, err = withParameter(s.attrs, param, value)
			return err
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	s.rules, err = answer.Select(s.set, name, !s.one)
	return s, err
}
