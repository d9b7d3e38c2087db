package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An Example is a call from the examples of the description.
type Example struct {
	Name   string // that of the example
	Method string
	URL    string
	Body   string
	want   string // pointer to the example of the answer, or empty
}

// String returns the operation and the name of e.
func (e *Example) String() string { return e.Method + " " + e.URL + " " + e.Name }

// Examples returns the calls of the operations whose paths start with a prefix, in
// the order of the document.
func (d *Description) Examples(t testing.TB, prefix string) (list []Example) {
	t.Helper()
	for _, path := range d.paths {
		item, pointer := d.object("/paths/" + escape.Replace(path))
		for _, method := range []string{"post", "put", "get", "patch", "delete"} {
			if item[method] == nil || !strings.HasPrefix(path, prefix) {
				continue
			}
			operation := pointer + "/" + method
			for _, e := range d.calls(t, pointer, operation) {
				e.Method, e.URL = strings.ToUpper(method), path+e.URL
				e.want = d.answer(operation, e.Name)
				list = append(list, e)
			}
		}
	}
	return list
}

// calls returns the bodies and queries of an operation that have examples.
func (d *Description) calls(t testing.TB, path, operation string) (list []Example) {
	t.Helper()
	if bodies, _ := d.object(operation + "/requestBody/content/application~1json/examples"); bodies != nil {
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			body, err := json.Marshal(bodies[name].(map[string]any)["value"])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Example{Name: name, Body: string(body)})
		}
		return list
	}
	queries := map[string]url.Values{}
	for _, pointer := range []string{path + "/parameters", operation + "/parameters"} {
		parameters, _ := d.at(pointer)
		all, _ := parameters.([]any)
		for i := range all {
			p, _ := d.object(fmt.Sprintf("%s/%d", pointer, i))
			examples, _ := p["examples"].(map[string]any)
			for name, e := range examples {
				if queries[name] == nil {
					queries[name] = url.Values{}
				}
				value := e.(map[string]any)["value"]
				if object, ok := value.(map[string]any); ok {
					for attribute, v := range object {
						queries[name].Set(attribute, fmt.Sprint(v))
					}
					continue
				}
				queries[name].Set(p["name"].(string), fmt.Sprint(value))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		list = append(list, Example{Name: name, URL: "?" + queries[name].Encode()})
	}
	if len(list) == 0 {
		list = []Example{{}}
	}
	return list
}

// answer returns the pointer to the example of an answer, or an empty one. A call
// without parameters has an example without a name; its answer is the only one.
func (d *Description) answer(operation, name string) string {
	responses, _ := d.object(operation + "/responses")
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		_, response := d.object(operation + "/responses/" + status)
		content, _ := d.object(response + "/content")
		for kind := range content {
			pointer := response + "/content/" + escape.Replace(kind) + "/examples/"
			examples, _ := d.object(strings.TrimSuffix(pointer, "/"))
			if name == "" && status == "200" {
				for only := range examples {
					return pointer + escape.Replace(only)
				}
			}
			if examples[name] != nil {
				return pointer + escape.Replace(name)
			}
		}
	}
	return ""
}

// Compare fails t if the answer to e is not the one of the document. Receipts may
// differ.
func (d *Description) Compare(t testing.TB, e *Example, x *Exchange) {
	t.Helper()
	if e.want == "" {
		return
	}
	want, _ := d.at(e.want + "/value")
	var got any = x.Answer
	if _, isText := want.(string); !isText {
		var err error
		if got, err = jsonschema.UnmarshalJSON(strings.NewReader(x.Answer)); err != nil {
			t.Errorf("%s: %v", e, err)
			return
		}
	}
	if !reflect.DeepEqual(plain(got), plain(want)) {
		t.Errorf("%s: got\n%s\nand the document has another answer at %s", e, x.Answer, e.want)
	}
}

// Receipt returns the receipt in the example of the answer to e, or "".
func (d *Description) Receipt(e *Example) string {
	value, _ := d.at(e.want + "/value/receipt")
	text, _ := value.(string)
	return text
}

// markExamples marks the examples of a media type, at a pointer, that equal value.
func (d *Description) markExamples(pointer string, value any) {
	examples, _ := d.object(pointer + "/examples")
	for name, e := range examples {
		if reflect.DeepEqual(plain(e.(map[string]any)["value"]), plain(value)) {
			d.mark(pointer + "/examples/" + escape.Replace(name))
		}
	}
}

// plain returns value without the text of receipts, which are random, and with
// numbers in one form.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		same := map[string]any{}
		for name, member := range v {
			if same[name] = plain(member); name == "receipt" {
				same[name] = "some"
			}
		}
		return same
	case []any:
		same := make([]any, len(v))
		for i := range v {
			same[i] = plain(v[i])
		}
		return same
	case json.Number:
		f, _ := v.Float64() // JSON has no other numbers
		return f
	}
	return value
}

// Unseen returns the pointers to the responses of the operations whose paths start
// with a prefix, and to the examples of their bodies, that no exchange had.
func (d *Description) Unseen(prefix string) (unseen []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := func(pointer string) {
		if !d.seen[pointer] && !slices.Contains(unseen, pointer) {
			unseen = append(unseen, pointer)
		}
	}
	content := func(pointer string) {
		kinds, _ := d.object(pointer + "/content")
		for kind := range kinds {
			media, at := d.object(pointer + "/content/" + escape.Replace(kind))
			examples, _ := media["examples"].(map[string]any)
			for name := range examples {
				missing(at + "/examples/" + escape.Replace(name))
			}
		}
	}
	for _, path := range d.paths {
		item, pointer := d.object("/paths/" + escape.Replace(path))
		for method := range item {
			operation, at := d.object(pointer + "/" + method)
			responses, _ := operation["responses"].(map[string]any)
			if responses == nil || !strings.HasPrefix(path, prefix) {
				continue
			}
			content(at + "/requestBody")
			for status := range responses {
				missing(at + "/responses/" + status)
				_, response := d.at(at + "/responses/" + status)
				content(response)
			}
		}
	}
	slices.Sort(unseen)
	return unseen
}

// Has reports whether an operation has a status.
func (d *Description) Has(method, path string, status int) bool {
	value, _ := d.at(fmt.Sprintf("/paths/%s/%s/responses/%d", escape.Replace(path), strings.ToLower(method), status))
	return value != nil
}

// Operations returns the operations by "METHOD PATH", each with the scopes that its
// token needs, separated by commas. An operation that needs no token has "-".
func (d *Description) Operations() map[string]string {
	all := map[string]string{}
	for _, path := range d.paths {
		item, _ := d.object("/paths/" + escape.Replace(path))
		for method, value := range item {
			operation, _ := value.(map[string]any)
			if operation["responses"] == nil {
				continue
			}
			security, _ := operation["security"].([]any)
			if security == nil {
				security = d.root["security"].([]any)
			}
			need := "-"
			for _, way := range security {
				if scopes, ok := way.(map[string]any)["token"].([]any); ok {
					var names []string
					for _, s := range scopes {
						names = append(names, s.(string))
					}
					need = strings.Join(names, ",")
				}
			}
			all[strings.ToUpper(method)+" "+path] = need
		}
	}
	return all
}
