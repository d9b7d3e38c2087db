// Package accesslog reads the lines that web servers write for each request,
// in the common log format
//
//	address ident user [day/month/year:hour:minute:second zone] "request" status bytes
//
// in the combined one, which adds "referer" and "agent", and in both with the
// virtual host before the address. What follows the last known field is left
// alone, so formats that only add to these can be read too.
package accesslog

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/window"
)

// Entry is what one line says. Its texts are parts of the line, as they are
// written there: what a server escaped with backslashes stays escaped. A field
// that the line leaves out or gives as "-" is empty.
type Entry struct {
	// Time is the moment of the request, whole seconds as the formats have it.
	Time window.Instant

	// Host is the virtual host without its port, from the start of the line
	// or from a request that spells out the whole address.
	Host string

	// IP is the client's address, or its name where the server looked it up.
	IP string

	// Method, Path and Query are the parts of the request line; the query is
	// without its question mark. All three are empty when the line was not
	// HTTP, as when somebody speaks TLS to an open port.
	Method, Path, Query string

	// Status has three digits.
	Status string

	// Bytes is the size of the response in digits, "0" where the line says "-".
	Bytes string

	Referer, Agent string
}

// Parse reads one line, without its newline, into e. It allocates nothing but
// the error, which names the column that it stopped at. e is then half set.
func Parse(line string, e *Entry) error {
	*e = Entry{}
	line = strings.TrimSuffix(line, "\r")

	at := strings.Index(line, " [")
	if at < 0 || !e.origin(line[:at]) {
		return wrong(0, "address ident user [")
	}
	at += len(" [")

	if len(line) < at+timeLength+len("] ") || line[at+timeLength:at+timeLength+2] != "] " {
		return wrong(at, timeForm)
	}
	var ok bool
	if e.Time, ok = parseTime(line[at : at+timeLength]); !ok {
		return wrong(at, timeForm)
	}
	at += timeLength + len("] ")

	request, end := quoted(line, at)
	if end < 0 {
		return wrong(at, `"request"`)
	}
	e.request(request)
	at = end

	if e.Status, end = word(line, at); !isStatus(e.Status) {
		return wrong(at+1, "a status of three digits")
	}
	at = end
	if e.Bytes, end = word(line, at); !isSize(e.Bytes) {
		return wrong(at+1, "bytes, in at most 15 digits or -")
	}
	at = end
	if e.Bytes == "-" {
		e.Bytes = "0"
	}

	// The common format ends here; other fields than quoted ones are unknown.
	if at+1 >= len(line) || line[at+1] != '"' {
		return nil
	}
	if e.Referer, end = quoted(line, at+1); end < 0 {
		return wrong(at+1, `"referer"`)
	}
	e.Referer = present(e.Referer)
	if at = end; at == len(line) {
		return nil
	}
	if e.Agent, end = quoted(line, at+1); end < 0 {
		return wrong(at+1, `"agent"`)
	}
	e.Agent = present(e.Agent)
	return nil
}

func wrong(at int, want string) error {
	return fmt.Errorf("column %d: want %s", at+1, want)
}

// origin reads what stands before the time: address, ident, user, and in front
// of these perhaps the host. A user's name may hold blanks, so four words are
// not always a host; but then the second one is the ident, which nobody has
// sent for decades and servers write as "-".
func (e *Entry) origin(s string) bool {
	first, rest, _ := strings.Cut(s, " ")
	second, rest, _ := strings.Cut(rest, " ")
	_, user, hasUser := strings.Cut(rest, " ")
	switch {
	case first == "" || second == "" || rest == "":
		return false
	case hasUser && user != "" && second != "-":
		e.Host, e.IP = withoutPort(first), present(second)
	default:
		e.IP = present(first)
	}
	return true
}

// request takes a request line apart. The target may hold blanks, which some
// clients send and servers log.
func (e *Entry) request(s string) {
	method, target, _ := strings.Cut(s, " ")
	if !isMethod(method) {
		return
	}
	if at := strings.LastIndexByte(target, ' '); at >= 0 && strings.HasPrefix(target[at+1:], "HTTP/") {
		target = target[:at]
	}
	if target == "" {
		return
	}
	e.Method = method
	e.Path, e.Query, _ = strings.Cut(target, "?")
	if scheme, rest, ok := strings.Cut(e.Path, "://"); ok && isHTTP(scheme) {
		e.absolute(rest)
	}
}

// absolute takes apart what follows the scheme in a target such as
// http://host/path, which proxies are sent. Taken as a path it would walk
// around every rule for /path. No path at all means "/" (RFC 9112, 3.2.1).
func (e *Entry) absolute(rest string) {
	host, path := rest, "/"
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		host, path = rest[:at], rest[at:]
	}
	e.Path = path
	if e.Host == "" {
		e.Host = withoutPort(host)
	}
}
