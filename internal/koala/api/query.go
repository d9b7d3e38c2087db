package api

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir"
)

// appendParameters appends every parameter of a query, in order: of two with
// one name the last counts, for the engine as for koala. There is no query that
// it refuses or gives up on, since a request of which only a part was read
// could pass a rule by:
//
//   - a name without `=` has an empty value, which is the same as none;
//   - text with an escape that is not one stays as it is.
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

// unescape reads `%41` and `+`, which is a blank. It copies only text that has
// one of them.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
