package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ body, want string }{
		{`{"attributes":{}}`, `[] 1`},
		{" {\t\"attributes\" :\r\n { \"a\" : \"b\" } } ", `[{a b}] 1`},
		{`{"hits":3,"attributes":{"action":"post","user":42}}`, `[{action post} {user 42}] 3`},
		{`{"attributes":{"yes":true,"no":false,"empty":""}}`, `[{yes true} {no false} {empty }] 1`},
		{`{"attributes":{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é"}}`, "[{a \"\\/\b\f\n\r\té😀é}] 1"},
		{`{"attributes":{"a":1e35,"b":-1e-30}}`, `[{a 100000000000000000000000000000000000} {b -0.000000000000000000000000000001}] 1`},
		{`{"attributes":{"a":1e3,"b":1.50,"c":-0.0,"d":12.5e-1,"e":-2E+2,"f":0.05e1}}`, `[{a 1000} {b 1.5} {c 0} {d 1.25} {e -200} {f 0.5}] 1`},
		{`{"attributes":{"id":12345678901234567890.0}}`, `[{id 12345678901234567890}] 1`},
		{`{"attributes":{"tiny":1e-9,"zero":0e99999999999999999999}}`, `[{tiny 0.000000001} {zero 0}] 1`},
		{`{"attributes":{},"hits":0}`, `[] 0`},
		{`{"attributes":{},"hits":2.0}`, `[] 2`},
		{`{"attributes":{},"hits":9007199254740991}`, `[] 9007199254740991`},
		{`{"\u0061ttributes":{}}`, `[] 1`},
		{`{"attributes":{"user":42},"feedback":"solved"}`, `[{user 42}] 1 solved`},
	} {
		req, err := httpapi.Decode([]byte(tc.body))
		if err != nil {
			t.Errorf("%s: got %v, want %s", tc.body, err, tc.want)
			continue
		}
		if got := strings.TrimSpace(fmt.Sprint(req.Attributes, req.Hits, " "+req.Feedback)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.body, got, tc.want)
		}
	}
}

func TestDecodeFaults(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1025)
	for _, tc := range []struct{ body, want string }{
		{``, `1:1: the text ends, want an object`},
		{`[]`, `1:1: got '[', want an object`},
		{`{`, `1:2: the text ends, want a name in quotes`},
		{`{}`, `1:1: attributes: is missing`},
		{`{"attributes":{}`, `1:17: the text ends, want ',' or '}'`},
		{`{"attributes":{}} x`, `1:19: got 'x', want nothing after the object`},
		{`{"attributes":{},}`, `1:18: got '}', want a name in quotes`},
		{`{"attributes" {}}`, `1:15: attributes: got '{', want ':'`},
		{"{\n  \"attributes\": {\"ü\": [1]}\n}", `2:23: attributes.ü: got '[', want a string, a number or a boolean`},
		{`{"attributes":{"a":{"b":1}}}`, `1:20: attributes.a: got '{', want a string, a number or a boolean`},
		{`{"attributes":{"a":null}}`, `1:20: attributes.a: got 'n', want a string, a number or a boolean`},
		{`{"attributes":{"a":NaN}}`, `1:20: attributes.a: got 'N', want a string, a number or a boolean`},
		{`{"attributes":{"a":tru}}`, `1:20: attributes.a: got 't', want a value`},
		{`{"attributes":{"a":"b"`, `1:23: attributes: the text ends, want ',' or '}'`},
		{`{"attributes":{"a":"b`, `1:22: attributes.a: the text ends inside a string`},
		{`{"attributes":{"a":"b\`, `1:23: attributes.a: the text ends inside a string`},
		{`{"attributes":{"a":"\x"}}`, `1:21: attributes.a: not an escape; JSON has \" \\ \/ \b \f \n \r \t and \u0000`},
		{`{"attributes":{"a":"\u12g4"}}`, `1:21: attributes.a: \u wants four hexadecimal digits`},
		{`{"attributes":{"a":"\ud800"}}`, `1:21: attributes.a: half of a surrogate pair`},
		{`{"attributes":{"a":"\ud800\u0041"}}`, `1:21: attributes.a: half of a surrogate pair`},
		{"{\"attributes\":{\"a\":\"\t\"}}", `1:21: attributes.a: byte 0x09 in a string; write it as \u0009`},
		{"{\"attributes\":{\"a\":\"b\xff\"}}", `1:22: attributes.a: text is not valid UTF-8`},
		{"{\"attributes\":{\"a\":\"\\n\xff\"}}", `1:23: attributes.a: text is not valid UTF-8`},
		{`{"attributes":{"a":1,"a":2}}`, `1:22: attributes.a: is there twice`},
		{`{"attributes":{"":1}}`, `1:16: attributes: an attribute without a name`},
		{`{"attributes":{},"attributes":{}}`, `1:18: attributes: is there twice`},
		{`{"attributes":{},"hits":1,"hits":1}`, `1:27: hits: is there twice`},
		{`{"attributes":{},"Hits":1}`, `1:18: Hits: is unknown; a request has attributes, hits, feedback, idempotency_key and idempotency_for`},
		{`{"attributes":{},"verb":"take"}`, `1:18: verb: is unknown; a request has attributes, hits, feedback, idempotency_key and idempotency_for`},
		{`{"attributes":{},"hits":-1}`, `1:25: hits: is negative; use refund to give hits back`},
		{`{"attributes":{},"hits":1.5}`, `1:25: hits: is not a whole number`},
		{`{"attributes":{},"hits":1e16}`, `1:25: hits: is more than 9007199254740991`},
		{`{"attributes":{},"hits":"1"}`, `1:25: hits: got '"', want a number`},
		{`{"attributes":{},"feedback":"a","feedback":"a"}`, `1:33: feedback: is there twice`},
		{`{"attributes":{},"hits":0,"feedback":"a"}`, `1:25: hits: is 0, which counts nothing; leave it out with feedback`},
		{`{"attributes":{},"feedback":""}`, `1:29: feedback: is empty; leave it out to give hits back`},
		{`{"attributes":{},"feedback":null}`, `1:29: feedback: got 'n', want a name in quotes`},
		{`{"attributes":{},"feedback":"` + long + `"}`, `1:29: feedback: has 1025 bytes, more than 1024`},
		{`{"attributes":{"a":01}}`, `1:20: attributes.a: a number with a leading zero; write it in quotes to keep the zero`},
		{`{"attributes":{"a":1.}}`, `1:22: attributes.a: got '}', want a digit`},
		{`{"attributes":{"a":1e}}`, `1:22: attributes.a: got '}', want a digit`},
		{`{"attributes":{"a":-}}`, `1:21: attributes.a: got '}', want a digit`},
		{`{"attributes":{"a":1e36}}`, `1:20: attributes.a: a number with too many digits when written out`},
		{`{"attributes":{"a":1e-40}}`, `1:20: attributes.a: a number with too many digits when written out`},
		{`{"attributes":{"a":1e2000}}`, `1:20: attributes.a: a number with too many digits when written out`},
		{`{"attributes":{"a":"` + long + `"}}`, `1:20: attributes.a: has more than 1024 bytes`},
		{`{"attributes":{"` + long + `":1}}`, `1:16: attributes: a name has 1025 bytes, more than 1024`},
		{`{"` + long + `":1}`, `1:2: a name has 1025 bytes, more than 1024`},
		{`{"` + long + `"}`, `1:2: a name has 1025 bytes, more than 1024`},
		{`{"attributes":{` + many(65) + `}}`, `1:592: attributes: more than 64 attributes`},
	} {
		req, err := httpapi.Decode([]byte(tc.body))
		if err == nil {
			t.Errorf("%s: got %v, want %s", tc.body, req, tc.want)
		} else if err.Error() != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.body, err, tc.want)
		}
	}
}

// many returns n attributes, each of nine bytes with its comma.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"a%02d":%02d`, i, i%10+10)
	}
	return b.String()
}

func TestDecodeTakesWhatFits(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", 1024)
	req, err := httpapi.Decode([]byte(`{"attributes":{"` + value + `":"` + value + `",` + many(63) + `}}`))
	if err != nil {
		t.Fatalf("got %v, want no fault", err)
	}
	if got := len(req.Attributes); got != 64 {
		t.Errorf("got %d attributes, want 64", got)
	}
	if got, want := req.Attributes[0], (weir.Attribute{Name: value, Value: value}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
