package top

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// KeyText turns keys into text that is shown: in lists of top keys and denials, in
// logs and in traces. It is the only place that does so. Its zero value shows keys
// as they are. A KeyText is immutable and safe for concurrent use.
type KeyText struct {
	form   KeyForm
	secret string // of hashes
}

// KeyForm is how keys are shown.
type KeyForm string

const (
	// KeyPlain shows keys as they are, cut to 200 bytes.
	KeyPlain KeyForm = "plain"
	// KeyHashed shows 16 hexadecimal digits of the HMAC-SHA256 of a key: a key can
	// be recognised, and cannot be read.
	KeyHashed KeyForm = "hashed"
	// KeyNone shows no keys.
	KeyNone KeyForm = "none"
)

// Hides reports whether keys are not shown as they are.
func (f KeyForm) Hides() bool { return f == KeyHashed || f == KeyNone }

// KeyForms returns the names of all forms.
func KeyForms() []string { return []string{string(KeyPlain), string(KeyHashed), string(KeyNone)} }

// NewKeyText returns a KeyText of a form. secret is the secret of hashes. Without one
// it is random, so that the hash of a key changes with a restart.
func NewKeyText(form KeyForm, secret string) (KeyText, error) {
	switch form {
	case KeyPlain, KeyNone:
		return KeyText{form: form}, nil
	case KeyHashed:
		if secret == "" {
			secret = rand.Text()
		}
		return KeyText{form, secret}, nil
	}
	return KeyText{}, fmt.Errorf("%q: want one of %s", form, strings.Join(KeyForms(), ", "))
}

// Hides reports whether keys are not shown as they are.
func (k KeyText) Hides() bool { return k.form.Hides() }

// Of returns the text for a key, and whether keys are shown at all.
func (k KeyText) Of(key string) (text string, shown bool) {
	if k.form == KeyNone {
		return "", false
	}
	return string(k.append(nil, appendKey(nil, key))), true
}

// append appends the text for a key that [appendKey] has cut.
func (k KeyText) append(b, key []byte) []byte {
	switch k.form {
	case KeyNone:
		return b
	case KeyHashed:
		h := hmac.New(sha256.New, []byte(k.secret))
		h.Write(key)
		return hex.AppendEncode(b, h.Sum(nil)[:8])
	}
	return append(b, bytes.ToValidUTF8(key, []byte("\uFFFD"))...) // as answers need it
}

// maxKey is the longest text of a key in bytes.
const maxKey = 200

// appendKey appends key, cut to maxKey bytes. A text that was cut ends in eight bytes
// of the SHA-256 of the whole key, so that long keys remain distinct.
func appendKey(b []byte, key string) []byte {
	if len(key) <= maxKey {
		return append(b, key...)
	}
	const sum, ellipsis = 8, "…"
	cut := maxKey - len(ellipsis) - hex.EncodedLen(sum)
	for n := 0; n < utf8.UTFMax && !utf8.RuneStart(key[cut]); n++ {
		cut--
	}
	whole := sha256.Sum256([]byte(key))
	b = append(append(b, key[:cut]...), ellipsis...)
	return hex.AppendEncode(b, whole[:sum])
}
