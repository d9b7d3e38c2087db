package koalaapi

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir"
)

// appendParameters appends every parameter of a query, in order: of several
// with the same name the last one counts, for the engine as for koala. It
// accepts any query and reads all of it, so that no request can avoid a rule by
// a malformed part:
//
//   - a name without `=` has an empty value, which is the same as none;
//   - text with an invalid escape stays as it is.
func appendParameters(attrs []weir.Attribute, query string) []weir.Attribute {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		attrs = append(attrs, weir.Attribute{Name: unescape(name), Value: unescape(value)})
	}
	return attrs
}

// unescape decodes `%41` to A and `+` to a blank. It copies the text only if
// there is something to decode.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
