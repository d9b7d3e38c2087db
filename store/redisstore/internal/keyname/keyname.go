// Package keyname makes the names of the keys in Redis, which every release keeps.
package keyname

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A key in Redis reads
//
//	weir:{ann}:posts-per-hour:6dd2c1b94f10a3e7
//	prefix, key, rule, hash of the counters' identity and the key
//
// The part in braces decides the slot on a cluster. It is the counter's key,
// its parts joined by commas. Where the rule keeps keys together, it is what it
// keeps them together by, and the key follows the rule. A rule without a key has
// its name there.
//
//	weir:{acme}:posts-per-hour:ann:6dd2c1b94f10a3e7
//
// In a namespace the rule is NAMESPACE/RULE, and the hash covers the namespace.
//
// Bytes that are not plain are %XX. Parts longer than 64 bytes are cut there,
// with "…" as %E2%80%A6 at the end, and the hash then has 32 digits instead of
// 16: two counters never share a key. Distinct members that are too many for
// one string are in a sorted set, at the key with the suffix ":z", and a hash,
// with ":u". This format is stable: changing it would lose all counters.
const (
	keySeparator = ':'
	maxKeyPart   = 64
	keyCut       = "%E2%80%A6"

	MembersSuffix = ":z" // a sorted set: when a member was used last
	UsesSuffix    = ":u" // a hash: how often, when more than once
)

// Names makes the names of keys, which all begin with a prefix.
type Names struct{ Prefix string }

// Secret returns the name of the key of the secret of receipts:
//
//	weir:secret
//
// No counter has a key of this name, because it would have a brace after the prefix.
func (n Names) Secret() string { return n.Prefix + string(keySeparator) + "secret" }

// Log returns the name of the key of a log, such as
//
//	weir:log:denials/default/posts-per-hour
//
// No counter has a key of this name, as for Secret.
func (n Names) Log(name string) string {
	return n.Prefix + string(keySeparator) + "log" + string(keySeparator) + name
}

// Kept returns the names of the keys of a register, such as
//
//	weir:kept:{overrides}
//
// and two that begin so. They are in one slot. No counter has keys of these names, as for Secret.
func (n Names) Kept(name string) []string {
	key := n.Prefix + string(keySeparator) + "kept" + string(keySeparator) + "{" + name + "}"
	return []string{key, key + ":changed", key + ":removed"}
}

// All returns the names of all keys that op can have.
func (n Names) All(op *store.Op) []string {
	key := string(n.Append(nil, op))
	if op.Limit.Measure == window.Distinct {
		return StateAndMembers(key)
	}
	return []string{key}
}

// StateAndMembers returns the keys that a program which reads a state may need: that of
// the state, of its sorted set, and of its hash.
func StateAndMembers(key string) []string {
	return []string{key, key + MembersSuffix, key + UsesSuffix}
}

// StateOf returns the key of the state whose members key has.
// It reports whether key has the name of such a key.
func StateOf(key string) (string, bool) {
	state, ok := strings.CutSuffix(key, MembersSuffix)
	if !ok {
		state, ok = strings.CutSuffix(key, UsesSuffix)
	}
	return state, ok
}

// Append appends the name of op's key to b.
func (n Names) Append(b []byte, op *store.Op) []byte {
	sum := Digest(op)
	b = append(b, n.Prefix...)
	b = append(b, keySeparator, '{')
	tag, cut, cutKey, cutNamespace := len(b), false, false, false
	b, cutKey = appendTag(b, op)
	if len(b) == tag {
		b = hex.AppendEncode(b, sum[:8])
	}
	b = append(b, '}', keySeparator)
	if namespace := op.Space.Namespace(); namespace != "" {
		b, cutNamespace = appendEscaped(b, []byte(namespace), false)
		b = append(b, '/')
	}
	b, cut = appendEscaped(b, []byte(op.Space.Name()), false)
	b = append(b, keySeparator)
	if len(op.Together) > 0 {
		b, cutKey = appendReadable(b, op.Key)
		b = append(b, keySeparator)
	}
	if cut || cutKey || cutNamespace {
		return hex.AppendEncode(b, sum[:16])
	}
	return hex.AppendEncode(b, sum[:8])
}

// AppendRecord appends the name of the key of a record ([store.Call]'s Once), which op names, to b:
//
//	weir:{ann}:idempotency:e3ff1d2b4c6a880977345a1c0d2e4f66
//
// The part in braces is that of the key of beside, or a digest of op if beside is nil.
func (n Names) AppendRecord(b []byte, op, beside *store.Op) []byte {
	sum := Digest(op)
	b = append(append(b, n.Prefix...), keySeparator, '{')
	if beside != nil {
		b = n.AppendTag(b, beside)
	} else {
		b = hex.AppendEncode(b, sum[:8])
	}
	b = append(append(append(b, '}', keySeparator), "idempotency"...), keySeparator)
	return hex.AppendEncode(b, sum[:16])
}

// AppendTag appends the part of the name of op's key that decides the slot.
func (n Names) AppendTag(b []byte, op *store.Op) []byte {
	tag := len(b)
	if b, _ = appendTag(b, op); len(b) == tag {
		sum := Digest(op)
		return hex.AppendEncode(b, sum[:8])
	}
	return b
}

// appendTag appends what AppendTag does. It appends nothing where that is a digest. It
// reports whether the key had to be cut.
func appendTag(b []byte, op *store.Op) (_ []byte, cut bool) {
	tag := len(b)
	if len(op.Together) > 0 {
		b, _ = appendEscaped(b, op.Together, false)
	} else {
		b, cut = appendReadable(b, op.Key)
	}
	if len(b) == tag {
		b, _ = appendEscaped(b, []byte(op.Space.Name()), false)
	}
	return b, cut
}

// appendReadable appends a key for people: the parts that
// ruleset.AppendKey has joined, with commas between them, or the key as it is.
func appendReadable(b, key []byte) (_ []byte, cut bool) {
	start := len(b)
	for rest := key; len(rest) > 0; {
		part, after, ok := store.CutKey(rest)
		if !ok {
			return appendEscaped(b[:start], key, true)
		}
		if len(rest) < len(key) {
			b = append(b, ',')
		}
		var short bool
		b, short = appendEscaped(b, part, true)
		cut, rest = cut || short, after
	}
	return b, cut
}

// appendEscaped appends text with all but plain bytes escaped, and reports whether
// it had to be cut. Colons are plain inside a key (addresses have them), not in
// the name of a rule.
func appendEscaped(b, text []byte, colons bool) (_ []byte, cut bool) {
	if len(text) > maxKeyPart {
		text, cut = text[:maxKeyPart], true
	}
	const digits = "0123456789ABCDEF"
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-_.~@+/=!*", c) >= 0, colons && c == ':':
			b = append(b, c)
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	if cut {
		b = append(b, keyCut...)
	}
	return b, cut
}

// Digest returns a hash of the space and the key of op, the same in every
// process. The lengths come first, so that no two pairs are hashed as the same
// bytes. A namespace follows a mark that is not a valid length.
func Digest(op *store.Op) [sha256.Size]byte {
	var buf [256]byte
	b := buf[:0]
	if namespace := op.Space.Namespace(); namespace != "" {
		b = append(b, noLength...)
		b = binary.AppendUvarint(b, uint64(len(namespace)))
		b = append(b, namespace...)
	}
	b = binary.AppendUvarint(b, uint64(len(op.Space.ID())))
	b = append(b, op.Space.ID()...)
	b = append(b, op.Key...)
	return sha256.Sum256(b)
}

// noLength is longer than any number in [binary.AppendUvarint]'s encoding.
const noLength = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
