package access

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/fault"
)

// MaxFile is the largest tokens file, in bytes. It holds about 50,000 tokens.
const MaxFile = 8 << 20

// certPrefix starts the name of a client's certificate in a tokens file.
const certPrefix = "cert:"

// maxFaults is the number of faults after which a tokens file is read no further.
const maxFaults = 1000

// entry is one line of a tokens file.
type entry struct {
	holder *Holder
	digest digest
	cert   string // the certificate's name, instead of a digest
}

// maxName is the longest name of a token or of a namespace, in bytes.
const maxName = 64

// CheckName returns an error if text cannot be the name of a token or of a
// namespace.
func CheckName(text string) error {
	ok := text != "" && len(text) <= maxName && isAlphanumeric(text[0])
	for i := 0; ok && i < len(text); i++ {
		ok = isAlphanumeric(text[i]) || strings.IndexByte("._-", text[i]) >= 0
	}
	if !ok {
		return fmt.Errorf("%.80q: %s", text, wantedName)
	}
	return nil
}

const wantedName = "want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"

// checkWord is CheckName for a word of a tokens file. Somebody may have written a token
// or a hash there: it is no name, and errors do not contain it.
func checkWord(word string) error {
	switch err := CheckName(word); {
	case isSecret(word):
		return fmt.Errorf("a token or a hash instead of a name: %s", wantedName)
	case err != nil && len(word) >= minToken:
		return fmt.Errorf("%s: %s", shown(word), wantedName)
	default:
		return err
	}
}

// isSecret reports whether word looks like a token that NewToken returns, or like the
// digits of a hash.
func isSecret(word string) bool {
	if rest, ok := strings.CutPrefix(word, prefix); ok && len(rest) == len(rand.Text()) {
		return strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
	}
	_, err := hex.DecodeString(word)
	return err == nil && len(word) == hex.EncodedLen(len(digest{}))
}

// shown returns a word for an error. A word that is long enough for a token is only
// described.
func shown(word string) string {
	if len(word) >= minToken {
		return fmt.Sprintf("a word of %d characters", len(word))
	}
	return strconv.Quote(word)
}

// isAlphanumeric reports whether c is a letter or a digit of ASCII.
func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// parseFile reads the tokens file src, which the caller calls file. It returns
// all faults as a [fault.List]. A line is
//
//	NAME sha256:HASH scopes=SCOPE,… [namespace=NAME]
//	NAME cert:CERTIFICATE scopes=SCOPE,… [namespace=NAME]
//
// Empty lines, and those that start with #, are skipped.
func parseFile(file string, src []byte) ([]entry, error) {
	var entries []entry
	var faults fault.List
	seen := map[string]int{} // what must be unique, and its line
	number := 0
	for raw := range bytes.Lines(src) {
		number++
		line := strings.TrimRight(string(raw), "\r\n")
		if text := strings.TrimSpace(line); text == "" || text[0] == '#' {
			continue
		}
		e, column, err := parseLine(line)
		if err == nil {
			column, err = 1, e.unlike(seen, number)
		}
		if err != nil {
			f := fault.Newf("", "%v", err)
			// The line is not shown: it holds a hash, or a token that somebody wrote
			// there by mistake.
			f.Place = fault.Place{File: file, Line: number, Column: column}
			faults = append(faults, f)
			if len(faults) == maxFaults {
				break
			}
			continue
		}
		entries = append(entries, e)
	}
	return entries, faults.Err()
}

// parseLine reads one line. column is the place of the error, from 1.
func parseLine(line string) (e entry, column int, err error) {
	e.holder = &Holder{}
	seen := map[string]bool{}
	rest, at := line, 1
	for i := 0; ; i++ {
		trimmed := strings.TrimLeft(rest, " \t")
		at += len(rest) - len(trimmed)
		if trimmed == "" {
			break
		}
		word := trimmed
		if end := strings.IndexAny(trimmed, " \t"); end >= 0 {
			word = trimmed[:end]
		}
		switch {
		case i == 0:
			e.holder.Name, err = word, checkWord(word)
		case i == 1:
			err = e.secret(word)
		default:
			key, value, _ := strings.Cut(word, "=")
			if seen[key] {
				err = fmt.Errorf("%s is there twice", key)
			} else {
				err = e.option(key, value)
			}
			seen[key] = true
		}
		if err != nil {
			return e, at, err
		}
		rest, at = trimmed[len(word):], at+len(word)
	}
	switch {
	case e.cert == "" && e.digest == (digest{}):
		err = fmt.Errorf("no hash: want NAME sha256:HASH scopes=SCOPE,…; weir token new writes such a line")
	case e.holder.Scopes == 0:
		err = fmt.Errorf("no scopes: want scopes=%s, or some of them", All)
	}
	return e, at, err
}

// unlike returns an error if the name or the secret of e is in seen. It adds both
// to seen, with their line.
func (e *entry) unlike(seen map[string]int, line int) error {
	secret := "hash " + string(e.digest[:])
	if e.cert != "" {
		secret = "certificate " + e.cert
	}
	for _, unique := range []string{"name " + e.holder.Name, secret} {
		if first := seen[unique]; first > 0 {
			what, _, _ := strings.Cut(unique, " ")
			return fmt.Errorf("the same %s as in line %d", what, first)
		}
		seen[unique] = line
	}
	return nil
}

// secret reads the second word of a line. Errors do not contain it: somebody may
// have written a token there.
func (e *entry) secret(word string) (err error) {
	if cert, ok := strings.CutPrefix(word, certPrefix); ok {
		if e.cert = cert; cert == "" {
			return fmt.Errorf("cert: names no certificate")
		}
		return nil
	}
	if !strings.HasPrefix(word, hashPrefix) {
		return fmt.Errorf("the second word is not a hash: want %s…, or %sNAME for a client's certificate", hashPrefix, certPrefix)
	}
	e.digest, err = parseHash(word)
	return err
}

// option reads key=value.
func (e *entry) option(key, value string) (err error) {
	switch key {
	case "scopes":
		e.holder.Scopes, err = ParseScopes(value)
	case "namespace":
		e.holder.Namespace, err = value, checkWord(value)
	default:
		err = fmt.Errorf("%s: unknown; want scopes=SCOPE,… or namespace=NAME", shown(key))
	}
	return err
}

// Line returns the line of a tokens file for a token.
func Line(name, token string, scopes Scope, namespace string) string {
	line := fmt.Sprintf("%s %s scopes=%s", name, Hash(token), scopes)
	if namespace != "" {
		line += " namespace=" + namespace
	}
	return line
}
