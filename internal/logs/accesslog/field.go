package accesslog

import "strings"

// word is the text from the blank at line[at] to the next one, and where that
// is. It is empty when there is no blank at line[at].
func word(line string, at int) (string, int) {
	if at >= len(line) || line[at] != ' ' {
		return "", at
	}
	rest := line[at+1:]
	if end := strings.IndexByte(rest, ' '); end >= 0 {
		rest = rest[:end]
	}
	return rest, at + 1 + len(rest)
}

// quoted is the text between the quote at line[at] and its end, and where the
// line goes on; that is negative when there is no such text. A quote that is
// escaped, or that no blank follows, is part of the text: not every server
// escapes.
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

// escaped says whether what follows text is escaped: whether text ends in an
// odd number of backslashes.
func escaped(text string) bool {
	n := len(text)
	for n > 0 && text[n-1] == '\\' {
		n--
	}
	return (len(text)-n)%2 == 1
}

// present is a field without the "-" that stands for none.
func present(field string) string {
	if field == "-" {
		return ""
	}
	return field
}

// withoutPort cuts the port from name:port and [address]:port.
func withoutPort(host string) string {
	at := strings.LastIndexByte(host, ':')
	if at < 0 || strings.IndexByte(host[at:], ']') >= 0 {
		return host
	}
	return host[:at]
}

func isHTTP(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// isMethod says whether s can be a method: GET, M-SEARCH, VERSION_CONTROL.
func isMethod(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

func isStatus(s string) bool { return len(s) == 3 && isDigits(s) }

// isSize says whether s is a number of bytes. Fifteen digits stay below the
// most hits that a window holds.
func isSize(s string) bool { return s == "-" || s != "" && len(s) <= 15 && isDigits(s) }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
