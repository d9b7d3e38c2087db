package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
)

// top shows the keys that use each rule most, and those that it denies most.
func (a *API) top(x *exchange, w http.ResponseWriter, r *http.Request) error {
	set, asked, one, n, err := some(x.space, r, 10)
	if err != nil {
		return err
	}
	n = top.PerRule(n, len(asked))
	b := append(x.out[:0], `{"rules":[`...)
	for _, i := range asked {
		ru := set.Rule(i)
		t := x.space.Tops().Top(ru.Name, n)
		if !one && t.Used.Total == 0 && t.Denied.Total == 0 {
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
	}
	x.out = append(strconv.AppendInt(append(b, `],"missed":`...), x.space.Tops().Missed(), 10), '}')
	return respond(w, x.out)
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
		b = append(b, '}')
	}
	return append(b, ']', '}')
}

// denials shows recent denials, the newest one first.
func (a *API) denials(x *exchange, w http.ResponseWriter, r *http.Request) error {
	set, asked, _, n, err := some(x.space, r, 50)
	if err != nil {
		return err
	}
	names := make([]string, len(asked))
	for i, at := range asked {
		names[i] = set.Rule(at).Name
	}
	b := append(x.out[:0], `{"denials":[`...)
	all := x.space.Tops().Denials(names, n)
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDenial(b, &all[i])
	}
	x.out = append(b, ']', '}')
	return respond(w, x.out)
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
	return append(jsontext.AppendSeconds(append(b, `,"retry_after":`...), d.RetryAfter), '}')
}

// some reads ?rule=NAME&n=10, where both may be missing. It returns the indexes
// of the rules that are asked for, all without a name, and whether there is one.
func some(space *namespace.Namespace, r *http.Request, fallback int) (set *rule.Set, asked []int, one bool, n int, err error) {
	if space.Tops() == nil {
		return nil, nil, false, 0, &answer.Problem{
			Status: http.StatusNotFound, Detail: "the service keeps no top keys and denials: it runs with --top-keys 0",
		}
	}
	set = space.Engine().Rules()
	name, given := "", map[string]bool{}
	n = fallback
	err = parameters(r.URL.RawQuery, func(param, value string) (err error) {
		if given[param] {
			return badParameter(param, "is there twice")
		}
		given[param] = true
		switch param {
		case "rule":
			name = value
		case "n":
			if n, err = strconv.Atoi(value); err != nil || n < 1 || n > top.MaxAsked {
				return badParameter(param, fmt.Sprintf("%q: want a number from 1 to %d", value, top.MaxAsked))
			}
		default:
			return badParameter(param, "is unknown; want rule and n")
		}
		return nil
	})
	if err != nil {
		return nil, nil, false, 0, err
	}
	if !given["rule"] {
		asked = make([]int, set.Len())
		for i := range asked {
			asked[i] = i
		}
		return set, asked, false, n, nil
	}
	i, ok := set.Find(name)
	if !ok {
		return nil, nil, false, 0, &answer.Problem{
			Status: http.StatusNotFound, Field: "rule", Detail: fmt.Sprintf("%q: not found; /v1/rules lists the rules", name),
		}
	}
	return set, []int{i}, true, n, nil
}
