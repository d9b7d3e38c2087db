// Package jsontext appends text and durations as JSON. It allocates only to grow the slice.
package jsontext

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendSeconds appends d in seconds as its shortest decimal, and -1 for
// [window.Never].
func AppendSeconds(b []byte, d time.Duration) []byte {
	if d < 0 {
		return append(b, "-1"...)
	}
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	fraction := d % time.Second
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for unit := time.Second / 10; fraction > 0; unit /= 10 {
		b = append(b, '0'+byte(fraction/unit))
		fraction %= unit
	}
	return b
}

// AppendTexts appends texts as a JSON array.
func AppendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendText(b, t)
	}
	return append(b, ']')
}

// Escapes returns how many bytes of a JSON string of s are not in s, without its quotes.
func Escapes(s string) int {
	var room [256]byte
	return len(AppendText(room[:0], s)) - len(s) - 2
}

// AppendText appends s as a JSON string, with U+FFFD instead of each byte that
// is not UTF-8.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[plain:i]...), "\uFFFD"...)
				plain = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[plain:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			plain = i + 1
		}
		i++
	}
	return append(append(b, s[plain:]...), '"')
}
