package logs_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// wantedFields are paths for [FuzzJSON], with the values that they have for the standard
// library's decoder.
var wantedFields = map[string][]string{
	"a": {"a"}, "b": {"a", "b"}, "c": {"a", "b", "c"}, "first": {"a", "0"}, "deep": {"a", "1", "b"}, "dotted": {"a.b"}, "empty": {"x", ""},
	"quote": {`"`}, "number": {"12"}, "ä": {"ä"},
}

// FuzzJSON: the lines that are read are those that encoding/json decodes as objects,
// and each value is the one that encoding/json gives. Bytes that are not UTF-8 stay
// as they are, where encoding/json writes U+FFFD.
func FuzzJSON(f *testing.F) {
	for _, line := range []string{
		`{"ts":1,"a":"x"}`, `{"ts":1,"a":{"b":{"c":1.50}}}`, `{"ts":1,"a":[1,{"b":-0.0e-1}]}`, `{"ts":1,"a.b":true,"x":{"":null}}`,
		`{"ts":1,"\u0061":"\ud83d\ude00\ud83d\u0041\"\\\/\b\f\n\r\t","\"":"q"}`, `{"ts":1,"a":{"b":1},"a":{"c":2}}`, `{"ts":1,"a":{"b":1},"a":2}`,
		`{"ts":1,"a":1e999,"12":12345678901234567890}`, ` { "ts" : 1 , "a" : [ ] } `, `{"ts":1,"a":"` + strings.Repeat("x", 40) + `\u00e4"}`,
		`{"ts":1,"a":01}`, `{"ts":1,"a":1.}`, `{"ts":1,"a":-}`, `{"ts":1,"a":"` + "\x01" + `"}`, `{"ts":1,}`, `{"ts":1,"a":tru`, `{"ts":1} x`,
		`{"ts":1,"a":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`, "{\"ts\":1,\"a\":\"\xff\xc3\"}", `{"ts":1,"a":"\u12g4"}`, `{"ts":1,"a":"\x"}`,
		`{"ts":1,"a":[true,false,null,{}]}`, `{"ts":1,"a":{"b":"` + "\u007f\u2028" + `"}}`, `[]`, `{`, ``, `{"ts":1,"a":"12345678\"90"}`,
	} {
		f.Add(line)
	}
	spec := logs.Spec{Format: "json", Time: "ts", Map: map[string]string{}}
	var names []string
	for name, path := range wantedFields {
		names = append(names, name)
		quoted := make([]string, len(path))
		for i, part := range path {
			quoted[i] = part
			if part == "" || strings.Contains(part, ".") {
				quoted[i] = `"` + part + `"`
			}
		}
		spec.Map[name] = "." + strings.Join(quoted, ".")
	}
	format, err := spec.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := format.NewParser(names)
		e := replay.Entry{Values: make([]string, len(names))}
		err := p.Parse(line, &e)
		isBad := err != nil && strings.HasPrefix(err.Error(), "not a JSON object")
		var want map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		isObject := json.Valid([]byte(strings.TrimSuffix(line, "\r"))) && d.Decode(&want) == nil && want != nil
		if isBad == isObject {
			t.Fatalf("%q: got %v, encoding/json says it is an object: %v", line, err, isObject)
		}
		if err != nil {
			return
		}
		for i, name := range names {
			if got, want := e.Values[i], asText(at(want, wantedFields[name])); replaced(got) != want {
				t.Errorf("%q: %s is %q, want %q", line, name, got, want)
			}
		}
	})
}

// at returns the value at a path.
func at(v any, path []string) any {
	for _, part := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			v = nil
			if n := strings.Index("0123456789", part); len(part) == 1 && n >= 0 && n < len(in) {
				v = in[n]
			}
		default:
			return nil
		}
	}
	return v
}

// asText returns a value as the text of an attribute.
func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		b, _ := json.Marshal(v)
		return string(b)
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return v.String()
	}
	return ""
}

// replaced returns text with U+FFFD for each byte that is not UTF-8.
func replaced(text string) string { return string(bytes.Runes([]byte(text))) }
