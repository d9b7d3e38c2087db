package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
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

// badParameter returns the answer to a parameter that is wrong.
func badParameter(name, problem string) *answer.Problem {
	return &answer.Problem{Status: http.StatusBadRequest, Field: name, Detail: problem}
}

// withParameter appends an attribute from a query string. The same bounds hold
// as for one in JSON.
func withParameter(attrs []weir.Attribute, name, value string) ([]weir.Attribute, error) {
	if f := suits(attrs, name); f != nil {
		return attrs, badParameter(f.Path, f.Problem)
	}
	if len(value) > sizes.Text {
		return attrs, badParameter(name, fmt.Sprintf("has %d bytes, more than %d", len(value), sizes.Text))
	}
	if !utf8.ValidString(name) || !utf8.ValidString(value) {
		return attrs, badParameter(name, "text is not valid UTF-8")
	}
	return append(attrs, weir.Attribute{Name: name, Value: value}), nil
}
