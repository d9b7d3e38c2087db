// Package urlpath gives rules the paths of requests as servers resolve them.
package urlpath

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir"
)

// InAttributes cleans the path in the attribute path, if that is a URI, and returns attributes. A query stays.
func InAttributes(attributes []weir.Attribute) []weir.Attribute {
	for i := range attributes {
		if a := &attributes[i]; a.Name == "path" && (strings.HasPrefix(a.Value, "/") || strings.Contains(a.Value, ":/")) {
			path, query, found := strings.Cut(a.Value, "?")
			if a.Value = Clean(path); found {
				a.Value += "?" + query
			}
		}
	}
	return attributes
}

// Clean returns the path of a URI in the form that servers resolve it to: with
// escapes decoded, without empty and dot segments, and without the query. It
// starts with a slash, and a backslash is one, too. Otherwise a client could write the
// same path in ways that a rule does not know: //api/y, /x/../api/y, /%61pi/y, /api\y,
// http://host/api/y, http:/api/y. Bytes that are not UTF-8 become U+FFFD.
func Clean(uri string) string {
	if end := strings.IndexAny(uri, "?#"); end >= 0 {
		uri = uri[:end]
	}
	if scheme, rest, ok := strings.Cut(uri, ":/"); ok && !strings.Contains(scheme, "/") {
		uri = rest
		if host, ok := strings.CutPrefix(rest, "/"); ok {
			_, uri, _ = strings.Cut(host, "/")
		}
		uri = "/" + uri
	}
	if isClean(uri) {
		return strings.ToValidUTF8(uri, "\uFFFD")
	}
	path := strings.ReplaceAll(decode(uri), `\`, "/")
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
		case "..":
			if len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, segment)
		}
	}
	clean := "/" + strings.Join(kept, "/")
	if last := path[strings.LastIndexByte(path, '/')+1:]; len(kept) > 0 && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return strings.ToValidUTF8(clean, "\uFFFD")
}

// isClean reports whether path surely stays as it is.
func isClean(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/.") && !strings.ContainsAny(path, `%\`)
}

// decode decodes the escapes in path. What is no escape stays.
func decode(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if decoded, err := url.PathUnescape(path[i : i+3]); err == nil {
				b.WriteString(decoded)
				i += 2
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
