package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/jsontext"
)

// seconds is a length of time in an answer: -1 for never.
type seconds time.Duration

// MarshalJSON implements [json.Marshaler].
func (s seconds) MarshalJSON() ([]byte, error) {
	return jsontext.AppendSeconds(nil, time.Duration(s)), nil
}

// instant is an instant in an answer, in UTC and to the microsecond. The zero value is left out by omitzero.
type instant struct{ time.Time }

// MarshalJSON implements [json.Marshaler].
func (t instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
}

// bad returns the answer to a parameter or a field that is wrong.
func bad(field, format string, args ...any) error {
	return &answer.Problem{Status: http.StatusBadRequest, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// query reads the parameters of r: read gets each name once, and returns an error for one that is unknown.
func query(r *http.Request, read func(name, value string) error) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("", "the query is not valid: %v", err)
	}
	for name, all := range values {
		if len(all) > 1 {
			return bad(name, "is there twice")
		}
		if err := read(name, all[0]); err != nil {
			return err
		}
	}
	return nil
}

// withAttribute appends an attribute, if it is one that requests can have.
func withAttribute(attributes []weir.Attribute, name, value string) ([]weir.Attribute, error) {
	if f := answer.AttributeFault(attributes, name, value); f != nil {
		return nil, bad(f.In("attributes").Path, "%s", f.Problem)
	}
	return append(attributes, weir.Attribute{Name: name, Value: value}), nil
}
