// Package urlpath gives rules the paths of requests as servers resolve them.
package urlpath

import (
	"errors"
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
	path := slashed(uri)
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

// separators are what only some servers take for a slash, as escapes that are decoded to escapes.
var separators = strings.NewReplacer("%2f", "%252F", "%2F", "%252F", "%5c", "%255C", "%5C", "%255C", `\`, "%255C")

// Plain returns what Clean does, for servers that take a backslash or an escaped slash for a part of its segment. It stays
// there as an escape: /api/x%2fy is /api/x%2Fy.
func Plain(uri string) string { return Clean(separators.Replace(uri)) }

// Check returns an error if no clean form of the path of uri is right for all servers. Some resolve a segment .., some only
// between plain slashes, and some never; for some a # ends the path. Clients resolve such segments, and do not send a #.
func Check(uri string) error {
	path, _, _ := strings.Cut(uri, "?")
	if strings.Contains(path, "#") {
		return errors.New("a path with a #, which ends it for some servers")
	}
	if isClean(path) {
		return nil
	}
	for segment := range strings.SplitSeq(slashed(path), "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == ".." {
			return errors.New("a path with a segment .., which only some servers resolve")
		}
	}
	return nil
}

// slashed returns path with its escapes decoded and its backslashes turned into slashes.
func slashed(path string) string {
	return strings.ReplaceAll(decode(path), `\`, "/")
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
