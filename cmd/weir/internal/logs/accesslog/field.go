package accesslog

import "strings"

// cut cuts s like [strings.Cut], at a separator of one byte, which is quicker to find.
func cut(s string, sep byte) (before, after string, found bool) {
	if at := strings.IndexByte(s, sep); at >= 0 {
		return s[:at], s[at+1:], true
	}
	return s, "", false
}

// mostDigits is the most digits of a number of bytes. Such numbers are below the highest
// count of a window.
const mostDigits = 15

// digits returns the word behind the blank at line[at], and the index after it. The text
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
