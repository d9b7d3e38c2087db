package httpapi

import (
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// usage shows the numbers of one key of one rule, and the series of a counter.
func (a *API) usage(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := oneKey(r)
	if err != nil {
		return err
	}
	u, err := x.space.Engine().Usage(r.Context(), name, attrs)
	if err != nil {
		return err
	}
	b := appendUsage(append(x.out[:0], '{'), &u.Usage)
	if u.Holds > 0 {
		b = appendInt(append(b, `,"holds":`...), int64(u.Holds))
	}
	if u.Strikes > 0 {
		b = appendInt(append(b, `,"strikes":`...), u.Strikes)
	}
	if u.Kind == rule.KindCounter {
		b = appendSeries(append(b, `,"series":`...), u.History)
	}
	if u.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	x.out = append(b, '}')
	return respond(w, x.out)
}

// forget deletes what a rule has counted for a key.
func (a *API) forget(x *exchange, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := oneKey(r)
	if err != nil {
		return err
	}
	if err := x.space.Engine().Forget(r.Context(), name, attrs); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// oneKey reads ?rule=NAME&attribute=value….
func oneKey(r *http.Request) (name string, attrs []weir.Attribute, err error) {
	err = parameters(r.URL.RawQuery, func(param, value string) error {
		if param == "rule" {
			if name != "" {
				return badParameter("rule", "is there twice")
			}
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
		b = append(appendInt(append(b, `,"hits":`...), c.Hits), '}')
	}
	return append(b, ']')
}
