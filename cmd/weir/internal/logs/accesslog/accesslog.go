// Package accesslog parses access logs of web servers. It reads the common log
// format
//
//	address ident user [day/month/year:hour:minute:second zone] "request" status bytes
//
// and the combined log format, which adds "referer" and "agent". In both, a
// virtual host can precede the address. Fields after the known ones are ignored,
// so formats that only add fields can be read, too.
package accesslog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// Entry has the fields of one line. Its strings are unchanged parts of the line:
// text that a server escaped with backslashes stays escaped. A field that the line
// leaves out or gives as "-" is empty.
type Entry struct {
	// Time is the time of the request, in whole seconds as in the formats.
	Time window.Instant

	// Host is the virtual host without its port, from the start of the line or
	// from a request with an absolute URL.
	Host string

	// IP is the client's address, or its name if the server looked it up.
	IP string

	// Method, Path and Query are the parts of the request line; Query has no
	// question mark. All three are empty if the request was not HTTP, for example
	// TLS on a port for plain HTTP.
	Method, Path, Query string

	// Status has three digits.
	Status string

	// Bytes is the size of the response in digits, "0" if the line has "-".
	Bytes string

	Referer, Agent string
}

// Parser parses lines. It is fastest for the lines of one log in their order, because it caches
// the minute of the last line. The zero Parser is ready for use. It is
// not safe for concurrent use.
type Parser struct{ minute minute }

// Parse parses one line, without its newline, into e. The error has the column at
// which Parse stopped; e is then partly set. Only the error is allocated.
func (p *Parser) Parse(line string, e *Entry) error {
	*e = Entry{}
	line = strings.TrimSuffix(line, "\r")

	if strings.HasPrefix(line, `"`) {
		return wrong(0, "address ident user [, without quotes around the line")
	}
	at := timeStart(line)
	if at < 0 || !e.origin(line[:at]) {
		return wrong(0, "address ident user [")
	}
	at += len(" [")

	if len(line) < at+timeLength+len("] ") || line[at+timeLength:at+timeLength+2] != "] " {
		return wrong(at, timeForm)
	}
	var ok bool
	if e.Time, ok = p.minute.time(line[at : at+timeLength]); !ok {
		return wrong(at, timeForm)
	}
	at += timeLength + len("] ")

	request, end := quoted(line, at)
	if end < 0 {
		return wrong(at, `"request"`)
	}
	e.request(request)
	at = end

	if e.Status, end = digits(line, at, 3); len(e.Status) != 3 {
		return wrong(at+1, "a status of three digits")
	}
	at = end
	if e.Bytes, end = digits(line, at, mostDigits); e.Bytes == "" {
		return wrong(at+1, "bytes, in at most 15 digits or -")
	}
	at = end
	if e.Bytes == "-" {
		e.Bytes = "0"
	}

	// The common format ends here. Known fields after it are quoted.
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

// timeStart returns the index of the first " [", or -1. It looks for the bracket,
// because a line has several blanks before it.
func timeStart(line string) int {
	for from := 0; ; {
		at := strings.IndexByte(line[from:], '[')
		if at < 0 {
			return -1
		}
		if from += at; from > 0 && line[from-1] == ' ' {
			return from - 1
		}
		from++
	}
}

func wrong(at int, want string) error {
	return fmt.Errorf("column %d: want %s", at+1, want)
}

// origin parses the part before the time: address, ident, user, and before them
// the host, if there is one. A user's name can have blanks, so four words do not
// always have a host. Without a host, the second word is the ident, which servers
// have written as "-" for decades.
func (e *Entry) origin(s string) bool {
	first, rest, _ := strings.Cut(s, " ")
	second, rest, _ := strings.Cut(rest, " ")
	if first == "" || second == "" || rest == "" {
		return false
	}
	if second != "-" {
		if _, user, _ := strings.Cut(rest, " "); user != "" {
			e.Host, e.IP = withoutPort(first), present(second)
			return true
		}
	}
	e.IP = present(first)
	return true
}

// Request returns the method and the target of a request line. Both are empty if it is not one.
// The target can have blanks, because some clients send them and servers log them.
func Request(line string) (method, target string) {
	method, target, _ = strings.Cut(line, " ")
	if at := strings.LastIndexByte(target, ' '); at >= 0 && strings.HasPrefix(target[at+1:], "HTTP/") {
		target = target[:at]
	}
	if !isMethod(method) || target == "" {
		return "", ""
	}
	return method, target
}

// request parses a request line.
func (e *Entry) request(s string) {
	method, target := Request(s)
	if method == "" {
		return
	}
	e.Method = method
	e.Path, e.Query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(e.Path, "/") {
		return
	}
	if scheme, rest, ok := strings.Cut(e.Path, "://"); ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		e.absolute(rest)
	}
}

// absolute parses the part after the scheme in a target such as http://host/path,
// which clients send to proxies. As a path it would bypass every rule for /path. An
// empty path means "/" (RFC 9112, 3.2.1).
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

// mostDigits is the maximum number of digits of a number of bytes. Such numbers are below the
// highest count of a window.
const mostDigits = 15

// digits returns the word after the blank at line[at], and the index after the word. The text
// is empty if the word is neither a number of one to most digits nor "-".
func digits(line string, at, most int) (text string, end int) {
	if at >= len(line) || line[at] != ' ' {
		return "", at
	}
	at++
	for end = at; end < len(line) && line[end]-'0' <= 9; end++ {
	}
	if end == at && end < len(line) && line[end] == '-' {
		end++
	}
	if end < len(line) && line[end] != ' ' || end-at > most {
		return "", end
	}
	return line[at:end], end
}

// quoted returns the text after the quote at line[at] up to the closing quote, and
// the index after that. The index is negative if there is no such text. A quote
// that is escaped, or without a blank after it, is part of the text, because not
// every server escapes quotes.
func quoted(line string, at int) (text string, end int) {
	if at >= len(line) || line[at] != '"' {
		return "", -1
	}
	for i := at + 1; ; i++ {
		next := strings.IndexByte(line[i:], '"')
		if next < 0 {
			return "", -1
		}
		i += next
		if (i+1 == len(line) || line[i+1] == ' ') && !escaped(line[at+1:i]) {
			return line[at+1 : i], i + 1
		}
	}
}

// escaped reports whether the character after text is escaped, that is, whether
// text ends in an odd number of backslashes.
func escaped(text string) bool {
	n := len(text)
	for n > 0 && text[n-1] == '\\' {
		n--
	}
	return (len(text)-n)%2 == 1
}

// present returns field, or "" if field is "-".
func present(field string) string {
	if field == "-" {
		return ""
	}
	return field
}

// withoutPort returns host without the port of name:port or [address]:port.
func withoutPort(host string) string {
	at := strings.LastIndexByte(host, ':')
	if at < 0 || strings.IndexByte(host[at:], ']') >= 0 {
		return host
	}
	return host[:at]
}

// isMethod reports whether s can be a method, such as GET or M-SEARCH.
func isMethod(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return s != "" && s != "-"
}

const (
	timeForm   = "[day/month/year:hour:minute:second zone]"
	timeLayout = "02/Jan/2006:15:04:05 -0700"
	timeLength = len(timeLayout)

	// where a time has its seconds
	secondAt, secondEnd = len("02/Jan/2006:15:04:"), len("02/Jan/2006:15:04:05")
)

// minute caches the minute of the last time. Most lines of a log are in the same minute as the
// line before, so only their seconds are parsed, in a tenth of the time.
type minute struct {
	text  [timeLength]byte // with the seconds of that time
	start window.Instant
	known bool
}

// time parses a time of the form timeLayout.
func (m *minute) time(s string) (window.Instant, bool) {
	second, err := strconv.ParseUint(s[secondAt:secondEnd], 10, 8)
	if err != nil || second > 60 { // 60: a leap second
		return 0, false
	}
	if !m.known || s[:secondAt] != string(m.text[:secondAt]) || s[secondEnd:] != string(m.text[secondEnd:]) {
		at, err := time.ParseInLocation(timeLayout, s[:secondAt]+"00"+s[secondEnd:], time.UTC)
		if err != nil || at.Year() < 1970 || at.Month().String()[:3] != s[3:6] { // package time ignores the case of months
			return 0, false
		}
		copy(m.text[:], s)
		m.start, m.known = window.At(at), true
	}
	return m.start + window.Instant(second)*1e6, true
}
