package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/store"
)

var (
	hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{5}`)
	halfPair     = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
)

// FuzzDecode compares the scanner with encoding/json: both read the same request,
// or neither reads one.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"attributes":{"action":"post","user":42},"hits":3}`,
		`{"attributes":{"a":"\u00e9\ud83d\ude00\n","b":1e3,"c":-1.50,"d":true}}`,
		`{"attributes":{"a":"b"},"attributes":{}}`,
		`{"attributes":{"a":"b"},"feedback":"sol\u0076ed"}`,
		`{"attributes":{"a":[1,{"b":null}]}}`,
		"{ \"hits\" : 0 , \"attributes\" : { } }\n",
		"{\"attributes\":{\"a\":\"\xff\"}}",
		`{"attributes":{"a":"\ud800"}}`,
		`{"attributes":{"a":"b"},"receipt":"QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAGMAAAAAAAAATQ"}`,
		`{"receipt":"QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAGMAAAAAAAAATQ","attributes":{},"hits":7}`,
		`{"receipt":"QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAGMAAAAAAAAATQ","attributes":{},"hits":0}`,
		`{"receipt":"yesterday","attributes":{}}`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, ends bool) {
		// Left out: exponents that fill the memory of reference, and halves of
		// surrogate pairs, which encoding/json replaces without a word.
		if hugeExponent.Match(body) || halfPair.Match(body) {
			return
		}
		verb := store.Take
		if ends {
			verb = store.Settle
		}
		want, refused := reference(verb, body)
		got, err := httpapi.DecodeFor(verb, body)
		switch {
		case err == nil && refused != nil:
			t.Fatalf("%q: got %v, want refused: %v", body, got, refused)
		case err != nil && refused == nil:
			t.Fatalf("%q: got refused: %v, want %v", body, err, want)
		case err == nil && shown(got) != shown(want):
			t.Fatalf("%q: got %s, want %s", body, shown(got), shown(want))
		}
	})
}

func shown(r weir.Request) string {
	return fmt.Sprintf("%q %d %q %s", r.Attributes, r.Hits, r.Feedback, r.Receipt)
}

// reference reads body, for verb, with encoding/json, and checks by hand what that
// package does not.
func reference(verb store.Verb, body []byte) (weir.Request, error) {
	req := weir.Request{Hits: 1}
	if verb.NeedsReceipt() {
		req.Hits = 0
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		return req, fmt.Errorf("not JSON in UTF-8")
	}
	top, err := members(body)
	if err != nil {
		return req, err
	}
	seen := map[string]bool{}
	for _, m := range top {
		if seen[m.name] {
			return req, fmt.Errorf("%s twice", m.name)
		}
		seen[m.name] = true
		switch {
		case m.name == "receipt" && verb.NeedsReceipt():
			var text string
			if err = json.Unmarshal(m.value, &text); err == nil {
				req.Receipt, err = receipt.Parse(text)
			}
		case m.name == "feedback" && verb.NeedsReceipt():
			err = fmt.Errorf("feedback in a %s", verb)
		case m.name == "attributes":
			req.Attributes, err = modelAttributes(m.value)
		case m.name == "hits":
			req.Hits, err = modelHits(m.value)
		case m.name == "feedback":
			req.Feedback, err = modelFeedback(m.value)
		default:
			err = fmt.Errorf("unknown %s", m.name)
		}
		if err != nil {
			return req, err
		}
	}
	if !seen["attributes"] {
		return req, fmt.Errorf("no attributes")
	}
	if verb.NeedsReceipt() && (!seen["receipt"] || seen["hits"] && req.Hits == 0) {
		return req, fmt.Errorf("no receipt, or no hits")
	}
	if req.Hits == 0 && seen["feedback"] {
		return req, fmt.Errorf("no hits but feedback")
	}
	return req, nil
}

// member is one name and value of an object. encoding/json reads the name.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of the object src in order, with repetitions.
func members(src []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object but %v: %w", t, err)
	}
	var list []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func modelAttributes(src []byte) ([]weir.Attribute, error) {
	list, err := members(src)
	if err != nil {
		return nil, err
	}
	var attrs []weir.Attribute
	seen := map[string]bool{}
	for _, m := range list {
		value, err := modelValue(m.value)
		switch {
		case err != nil:
			return nil, err
		case seen[m.name] || m.name == "" || len(m.name) > 1024 || len(value) > 1024 || len(attrs) == 64:
			return nil, fmt.Errorf("%q does not suit", m.name)
		}
		seen[m.name] = true
		attrs = append(attrs, weir.Attribute{Name: m.name, Value: value})
	}
	return attrs, nil
}

func modelValue(src []byte) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return fmt.Sprint(v), nil
	case json.Number:
		return modelNumber(string(v))
	}
	return "", fmt.Errorf("%T", v)
}

// modelNumber writes a number out with exact fractions.
func modelNumber(text string) (string, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", fmt.Errorf("%s is too long", text)
	}
	plain := r.FloatString(1100)
	plain = strings.TrimSuffix(strings.TrimRight(plain, "0"), ".")
	if back, _ := new(big.Rat).SetString(plain); back == nil || back.Cmp(r) != 0 {
		return "", fmt.Errorf("%s is too long", text)
	}
	digits := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(plain, "-"), "0."), ".", "")
	if len(digits) > len(strings.TrimPrefix(text, "-"))+32 {
		return "", fmt.Errorf("%s is too long when written out", text)
	}
	return plain, nil
}

func modelFeedback(src []byte) (name string, err error) {
	if src[0] != '"' {
		return "", fmt.Errorf("not text")
	}
	if err := json.Unmarshal(src, &name); err != nil || name == "" || len(name) > 1024 {
		return "", fmt.Errorf("%q does not suit", name)
	}
	return name, nil
}

func modelHits(src []byte) (int64, error) {
	if c := src[0]; c != '-' && (c < '0' || c > '9') {
		return 0, fmt.Errorf("not a number")
	}
	text, err := modelNumber(string(src))
	if err != nil {
		return 0, err
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 53 {
		return 0, fmt.Errorf("%s does not suit", text)
	}
	return n.Int64(), nil
}
