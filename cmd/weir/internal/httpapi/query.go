package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// parameters calls each for every name=value of a query string, in order. It
// stops at the first error.
func parameters(query string, each func(name, value string) error) error {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return badParameter(rawName, "the name is not valid in a query: "+err.Error())
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return badParameter(name, "the value is not valid in a query: "+err.Error())
		}
		if err := each(name, value); err != nil {
			return err
		}
	}
	return nil
}

// parametersOnce is parameters, and an error for a name that is there twice.
func parametersOnce(query string, each func(name, value string) error) error {
	given := map[string]bool{}
	return parameters(query, func(name, value string) error {
		if given[name] {
			return badParameter(name, "is there twice")
		}
		given[name] = true
		return each(name, value)
	})
}

// badParameter returns the answer to a parameter that is wrong.
func badParameter(name, problem string) *answer.Problem {
	return &answer.Problem{Status: http.StatusBadRequest, Field: fmt.Sprintf("%.100s", name), Detail: problem}
}

// withParameter appends an attribute from a query string. The same limits apply
// as for one in JSON.
func withParameter(attrs []weir.Attribute, name, value string) ([]weir.Attribute, error) {
	if f := answer.AttributeFault(attrs, name, value); f != nil {
		return attrs, badParameter(f.Path, f.Problem)
	}
	return append(attrs, weir.Attribute{Name: name, Value: value}), nil
}

// usage shows the numbers of one key of one rule, and the series of a counter.
func (a *API) usage(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := oneKey(r)
	if err != nil {
		return err
	}
	u, err := x.namespace.Engine().Usage(answer.Context(r), name, attrs)
	if err != nil {
		return err
	}
	b := appendUsage(append(x.out[:0], '{'), &u.Usage)
	if u.Holds > 0 {
		b = strconv.AppendInt(append(b, `,"holds":`...), int64(u.Holds), 10)
	}
	if u.Strikes > 0 {
		b = strconv.AppendInt(append(b, `,"strikes":`...), u.Strikes, 10)
	}
	if u.Kind == rule.KindCounter {
		b = appendSeries(append(b, `,"series":`...), u.History)
		if err := x.reserveText(len(b)); err != nil {
			return err
		}
	}
	if u.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return x.respond(w, append(b, '}'))
}

// forget deletes what a rule has counted for a key.
func (a *API) forget(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := oneKey(r)
	if err != nil {
		return err
	}
	if err := x.namespace.Forget(answer.Context(r), x.by(r), name, attrs); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// oneKey reads ?rule=NAME&attribute=value….
func oneKey(r *http.Request) (name string, attrs []weir.Attribute, err error) {
	err = parametersOnce(r.URL.RawQuery, func(param, value string) error {
		if param == "rule" {
			name = value
			return nil
		}
		attrs, err = withParameter(attrs, param, value)
		return err
	})
	if err == nil && name == "" {
		err = badParameter("rule", "is missing; name one, as in ?rule=views&page=/home")
	}
	return name, attrs, err
}

// appendSeries appends the cells of a counter.
func appendSeries(b []byte, cells []window.Cell) []byte {
	b = append(b, '[')
	for i, c := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Start.Time().AppendFormat(append(b, `{"start":"`...), time.RFC3339Nano)
		b = jsontext.AppendSeconds(append(b, `","seconds":`...), c.Length)
		b = append(strconv.AppendInt(append(b, `,"hits":`...), c.Hits, 10), '}')
	}
	return append(b, ']')
}
