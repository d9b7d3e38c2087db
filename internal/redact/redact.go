// Package redact hides secrets in text that people read, such as an error that repeats a
// line of a file. It is a second line of defence: a file with tokens may have been named
// where a rules file belongs.
package redact

import "strings"

// Text returns text with asterisks in place of what looks like a secret: a token that
// weir has made, the SHA-256 of one, a line of a private key, and the user and the
// password in a URL. A user without a password stays, because weir itself writes URLs so.
// Each byte is replaced by one asterisk, so that columns stay.
// Text returns the same string if there is nothing to hide.
func Text(text string) string {
	var b []byte // a copy of text; nil until something is hidden
	hide := func(from, to int) {
		if b == nil {
			b = []byte(text)
		}
		for i := from; i < to; i++ {
			b[i] = '*'
		}
	}
	for from := 0; from < len(text); {
		to := from
		for to < len(text) && ofWord(text[to]) {
			to++
		}
		if isSecret(text[from:to]) {
			hide(from, to)
		}
		from = to + 1
	}
	for at := 0; ; {
		i := strings.Index(text[at:], "://")
		if i < 0 {
			break
		}
		at += i + len("://")
		end := at
		for end < len(text) && text[end] > ' ' && text[end] != '"' {
			end++
		}
		if sign := strings.LastIndexByte(text[at:end], '@'); sign > 0 && !isName(text[at:at+sign]) {
			hide(at, at+sign)
		}
	}
	if b == nil {
		return text
	}
	return string(b)
}

// Keys returns text with asterisks in place of the keys that errors of a store name: what
// is quoted behind the word "key" and has a brace behind a colon, such as weir:{ann}:posts.
func Keys(text string) string {
	const start = `key "`
	from := strings.Index(text, start)
	if from < 0 {
		return text
	}
	from += len(start)
	to := from
	for to < len(text) && text[to] != '"' {
		if text[to] == '\\' {
			to++
		}
		to++
	}
	to = min(to, len(text))
	key := text[from:to]
	if strings.Contains(key, ":{") {
		key = "***"
	}
	return text[:from] + key + Keys(text[to:])
}

// isName reports whether a part of a URL can be the name of a user, and nothing else.
func isName(text string) bool {
	return len(text) < tokenRest && !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.*", r))
	})
}

// ofWord reports whether c can be part of a secret.
func ofWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_'
}

const (
	tokenStart = "weir_"
	tokenRest  = 26
	hashLength = 64

	// keyLength is the least length of a line of a key. Shorter ones are names.
	keyLength = 40
)

// isSecret reports whether word looks like a secret.
func isSecret(word string) bool {
	if rest, ok := strings.CutPrefix(word, tokenStart); ok && len(rest) >= tokenRest {
		return strings.Trim(rest[:tokenRest], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
	}
	if len(word) < keyLength || strings.Contains(word, "_") {
		return false
	}
	digits := strings.ContainsAny(word, "0123456789")
	small := strings.ContainsFunc(word, func(r rune) bool { return 'a' <= r && r <= 'z' })
	large := strings.ContainsFunc(word, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	if len(word) == hashLength && strings.Trim(word, "0123456789abcdefABCDEF") == "" {
		return digits && (small || large)
	}
	// The text of a key has all kinds of characters. A path has more slashes.
	return digits && small && large && strings.Count(word, "/")*12 <= len(word)
}
