package keyname

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/weirhq/weir/store"
)

// Pattern returns a pattern of the names of all keys of a space, for SCAN. Other names
// can match it; see [Names.Key].
func (n Names) Pattern(space *store.Space) string {
	b := appendLiteral(nil, n.Prefix+string(keySeparator)+"{")
	b = append(b, '*')
	return string(append(appendLiteral(b, "}"+string(keySeparator)+ruleOf(space)+string(keySeparator)), '*'))
}

// appendLiteral appends text as a pattern that matches only text.
func appendLiteral(b []byte, text string) []byte {
	for _, c := range []byte(text) {
		if strings.IndexByte(`*?[]^\`, c) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return b
}

// ruleOf returns the part of names that is the same for all keys of a space.
func ruleOf(space *store.Space) string {
	var b []byte
	if namespace := space.Namespace(); namespace != "" {
		b, _ = appendEscaped(b, []byte(namespace), false)
		b = append(b, '/')
	}
	b, _ = appendEscaped(b, []byte(space.Name()), false)
	return string(b)
}

// Key returns the key in space that has the given name. ok is false for the name of
// another space, as that of a rule that has changed, or of the members of a key. The key is nil
// if the name does not have all of it, because a part is too long; then it can be that of another space, too. It is also nil if it is empty.
func (n Names) Key(space *store.Space, name string) (key []byte, ok bool) {
	if _, beside := StateOf(name); beside {
		return nil, false
	}
	tag, rest, ok := strings.Cut(name, "}"+string(keySeparator)+ruleOf(space)+string(keySeparator))
	tag, ours := strings.CutPrefix(tag, n.Prefix+string(keySeparator)+"{")
	if !ok || !ours {
		return nil, false
	}
	sum := rest
	if i := strings.LastIndexByte(rest, keySeparator); i >= 0 { // the tag is what keys are together by
		tag, sum = rest[:i], rest[i+1:]
	}
	digest, err := hex.DecodeString(sum)
	if err != nil || len(digest) != 8 && len(digest) != 16 {
		return nil, false
	}
	for _, key := range [][]byte{parts(tag), unescape(tag), nil, {0}} { // without a key the tag is the rule's
		op := store.Op{Space: space, Key: key}
		if of := Digest(&op); bytes.HasPrefix(of[:], digest) {
			return key, true
		}
	}
	return nil, len(digest) == 16
}

// parts returns the key whose readable form is text.
func parts(text string) (key []byte) {
	for part := range strings.SplitSeq(text, ",") {
		raw := unescape(part)
		key = binary.AppendUvarint(key, uint64(len(raw)))
		key = append(key, raw...)
	}
	return key
}

func unescape(text string) []byte {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				b = append(b, c[0])
				i += 2
				continue
			}
		}
		b = append(b, text[i])
	}
	return b
}
