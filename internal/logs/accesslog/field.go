package accesslog

import "strings"

// cut cuts s like [strings.Cut], at a separator of one byte, which is quicker to find.
func cut(s string, sep byte) (before, after string, found bool) {
	if at := strings.IndexByte(s, sep); at >= 0 {
		return s[:at], s[at+1:], true
	}
	return s, "", false
}

// word returns the text from the blank at line[at] to the next blank, and the index
// of that blank. The text is empty if line[at] is not a blank.
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

func isHTTP(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// isMethod reports whether s can be a method, such as GET or M-SEARCH.
func isMethod(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

func isStatus(s string) bool { return len(s) == 3 && isDigits(s) }

// isSize reports whether s is a number of bytes or "-". Fifteen digits are below
// the highest count of a window.
func isSize(s string) bool { return s == "-" || s != "" && len(s) <= 15 && isDigits(s) }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
