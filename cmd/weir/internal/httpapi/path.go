package httpapi

import (
	"net/url"
	"strings"
)

// cleanPath returns the path of a URI in the form that servers resolve it to: with
// escapes decoded, without empty and dot segments, and without the query. It
// starts with a slash. Otherwise a client could write the same path in ways that a
// rule does not know: //api/y, /x/../api/y, /%61pi/y.
func cleanPath(uri string) string {
	if scheme, rest, ok := strings.Cut(uri, "://"); ok && !strings.ContainsAny(scheme, "/?#") {
		_, path, _ := strings.Cut(rest, "/")
		uri = "/" + path
	}
	if end := strings.IndexAny(uri, "?#"); end >= 0 {
		uri = uri[:end]
	}
	if isClean(uri) {
		return uri
	}
	path := decode(uri)
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
	return clean
}

// isClean reports whether path surely stays as it is.
func isClean(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/.") && !strings.Contains(path, "%")
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
