package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An Exchange is one call and its answer.
type Exchange struct {
	Method string
	URL    string // path and query
	Header http.Header
	Body   string

	Status int
	Got    http.Header
	Answer string
}

// String returns the call and the answer for a failure.
func (x *Exchange) String() string {
	return fmt.Sprintf("%s %s %.300s\n-> %d %.600s", x.Method, x.URL, x.Body, x.Status, x.Answer)
}

// Send sends a call to h.
func Send(h http.Handler, r *http.Request) *Exchange {
	var body bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return &Exchange{
		Method: r.Method, URL: r.URL.RequestURI(), Header: r.Header, Body: body.String(),
		Status: w.Code, Got: w.Header(), Answer: w.Body.String(),
	}
}

// Serve sends a call to h, and checks the exchange against d.
func (d *Description) Serve(t testing.TB, h http.Handler, r *http.Request) *Exchange {
	t.Helper()
	x := Send(h, r)
	d.Check(t, x)
	return x
}

// Check fails t if x is not as d describes it.
func (d *Description) Check(t testing.TB, x *Exchange) {
	t.Helper()
	for _, fault := range d.faults(t, x) {
		t.Errorf("%s\n%s", fault, x)
	}
}

// faults returns the differences between x and its description in d.
func (d *Description) faults(t testing.TB, x *Exchange) []string {
	t.Helper()
	at, err := url.Parse(x.URL)
	if err != nil {
		return []string{err.Error()}
	}
	path, item := d.find(at.Path)
	if item == nil {
		if x.Status != http.StatusNotFound && x.Status != http.StatusBadRequest {
			return []string{"the description has no such path"}
		}
		return d.body(t, "/components/responses/NoNamespace", x)
	}
	pathPointer := "/paths/" + escape.Replace(path)
	method := strings.ToLower(x.Method)
	if item[method] == nil && (method == "head" || anyMethod(path)) {
		method = "get"
	}
	pointer := pathPointer + "/" + method
	operation, _ := d.object(pointer)
	if operation == nil {
		return d.wrongMethod(t, pathPointer, x)
	}
	var faults []string
	if x.Status < 300 {
		faults = append(d.parameters(t, pathPointer, pointer, at, x), d.request(t, pointer, x)...)
	}
	return append(faults, d.response(t, pointer, x)...)
}

// anyMethod reports whether a path accepts every method. Its description has GET.
func anyMethod(path string) bool {
	return path == "/v1/gate" || path == "/healthz" || path == "/readyz"
}

// find returns the path of the description that an URL's path matches, and what it
// describes; nil if there is none.
func (d *Description) find(path string) (string, map[string]any) {
	if rest, ok := strings.CutPrefix(path, "/ns/"); ok { // the second server
		_, rest, _ := strings.Cut(rest, "/")
		if path = "/" + rest; !strings.HasPrefix(path, "/v1/") {
			return "", nil
		}
	}
	for _, known := range d.paths {
		prefix, variable, ok := strings.Cut(known, "{")
		switch item, _ := d.object("/paths/" + escape.Replace(known)); {
		case !ok && known == path:
			return known, item
		case ok && strings.HasPrefix(path, prefix) && slices.Contains(d.Values(known, strings.TrimSuffix(variable, "}")), path[len(prefix):]):
			return known, item
		}
	}
	return "", nil
}

// Values returns the values of a variable in a path.
func (d *Description) Values(path, variable string) (values []string) {
	list, _ := d.at("/paths/" + escape.Replace(path) + "/get/parameters")
	for _, p := range list.([]any) {
		if p := p.(map[string]any); p["name"] == variable {
			for _, v := range p["schema"].(map[string]any)["enum"].([]any) {
				values = append(values, v.(string))
			}
		}
	}
	return values
}

// wrongMethod returns the faults of the answer to a method that a path, at a
// pointer, does not have.
func (d *Description) wrongMethod(t testing.TB, pointer string, x *Exchange) []string {
	t.Helper()
	if x.Status == http.StatusForbidden { // pages of another origin are refused first
		return d.body(t, "/components/responses/Forbidden", x)
	}
	if x.Status != http.StatusMethodNotAllowed {
		return []string{"the description has no such method"}
	}
	var methods []string
	item, _ := d.object(pointer)
	for _, m := range []string{"delete", "get", "patch", "post", "put"} {
		if item[m] != nil {
			methods = append(methods, strings.ToUpper(m))
			d.mark(pointer + "/" + m + "/responses/405")
		}
	}
	if got, want := x.Got.Get("Allow"), strings.Join(methods, ", "); got != want {
		return []string{fmt.Sprintf("got Allow: %s, and the description has %s", got, want)}
	}
	return d.body(t, "/components/responses/MethodNotAllowed", x)
}

// request returns the faults of the body of a call that was accepted.
func (d *Description) request(t testing.TB, pointer string, x *Exchange) []string {
	t.Helper()
	media, real := d.object(pointer + "/requestBody/content/application~1json")
	if media == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(x.Body))
	if err != nil {
		return []string{"the body was accepted, and is not JSON: " + err.Error()}
	}
	if err := d.schema(t, real+"/schema").Validate(decided(value, x.Answer)); err != nil {
		return []string{fmt.Sprintf("the body was accepted, and is not as described: %v", err)}
	}
	d.markExamples(real, value)
	return nil
}

// Fits reports whether the body of x is as the description of its method and path has
// it. Requests of a batch that the answer refuses are left out.
func (d *Description) Fits(t testing.TB, x *Exchange) bool {
	t.Helper()
	return len(d.request(t, "/paths/"+escape.Replace(x.URL)+"/"+strings.ToLower(x.Method), x)) == 0
}

// decided returns a batch without the requests that the answer refuses, and any
// other body as it is.
func decided(body any, answer string) any {
	batch, _ := body.(map[string]any)
	requests, ok := batch["requests"].([]any)
	var answers struct{ Answers []struct{ Problem any } }
	if !ok || json.Unmarshal([]byte(answer), &answers) != nil || len(answers.Answers) != len(requests) {
		return body
	}
	kept := []any{}
	for i, r := range requests {
		if answers.Answers[i].Problem == nil {
			kept = append(kept, r)
		}
	}
	same := maps.Clone(batch)
	same["requests"] = kept
	return same
}

// parameters returns the faults of the parameters and headers of a call that was
// accepted.
func (d *Description) parameters(t testing.TB, path, operation string, at *url.URL, x *Exchange) (faults []string) {
	t.Helper()
	query := at.Query()
	free := ""
	for _, list := range []string{path + "/parameters", operation + "/parameters"} {
		all, _ := d.at(list)
		parameters, _ := all.([]any)
		for i := range parameters {
			p, pointer := d.object(fmt.Sprintf("%s/%d", list, i))
			name := p["name"].(string)
			var values []string
			switch p["in"] {
			case "query":
				values = query[name]
				if p["explode"] == true {
					free, values = pointer, nil
					continue
				}
				delete(query, name)
			case "header":
				values = x.Header.Values(name)
			}
			if len(values) == 0 && p["required"] == true && p["in"] != "path" {
				faults = append(faults, fmt.Sprintf("the call was accepted without the parameter %s", name))
			}
			for _, v := range values {
				if err := d.text(t, pointer, v); err != nil {
					faults = append(faults, fmt.Sprintf("the parameter %s was accepted: %v", name, err))
				}
			}
		}
	}
	attributes := map[string]any{}
	for name, values := range query {
		attributes[name] = values[0]
		if free == "" || len(values) > 1 {
			faults = append(faults, fmt.Sprintf("the parameter %s was accepted, and the description does not have it", name))
		}
	}
	if free != "" {
		if err := d.schema(t, free+"/schema").Validate(attributes); err != nil {
			faults = append(faults, fmt.Sprintf("the parameters were accepted: %v", err))
		}
	}
	return faults
}

// text validates the value of a parameter or a header at a pointer.
func (d *Description) text(t testing.TB, pointer, text string) error {
	t.Helper()
	var value any = text
	if kind, _ := d.at(pointer + "/schema/type"); kind == "integer" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		value = n
	}
	return d.schema(t, pointer+"/schema").Validate(value)
}

// response returns the faults of the answer of an operation.
func (d *Description) response(t testing.TB, operation string, x *Exchange) []string {
	t.Helper()
	pointer := fmt.Sprintf("%s/responses/%d", operation, x.Status)
	if response, _ := d.at(pointer); response == nil {
		pointer = operation + "/responses/default"
		if response, _ = d.at(pointer); response == nil {
			return []string{"the description does not have this status"}
		}
	}
	d.mark(pointer)
	return append(d.headers(t, pointer, x), d.body(t, pointer, x)...)
}

// unremarkable are the headers that every answer can have.
var unremarkable = []string{"Connection", "Content-Length", "Content-Type", "Date"}

func (d *Description) headers(t testing.TB, pointer string, x *Exchange) (faults []string) {
	t.Helper()
	_, response := d.at(pointer)
	described, _ := d.object(response + "/headers")
	left := x.Got.Clone()
	for name := range described {
		h, at := d.object(response + "/headers/" + escape.Replace(name))
		value := x.Got.Get(name)
		left.Del(name)
		switch {
		case value == "" && h["required"] == true:
			faults = append(faults, "no header "+name)
		case value != "":
			if err := d.text(t, at, value); err != nil {
				faults = append(faults, fmt.Sprintf("header %s: %v", name, err))
			}
		}
	}
	for name := range left {
		if !slices.Contains(unremarkable, name) {
			faults = append(faults, fmt.Sprintf("the description does not have the header %s", name))
		}
	}
	return faults
}

// body returns the faults of the body of an answer, which a response at a pointer
// describes.
func (d *Description) body(t testing.TB, pointer string, x *Exchange) []string {
	t.Helper()
	_, response := d.at(pointer)
	content, _ := d.object(response + "/content")
	kind := x.Got.Get("Content-Type")
	if kind == "" || x.Method == http.MethodHead {
		if x.Answer != "" {
			return []string{"a body without a content type"}
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return []string{err.Error()}
	}
	media, at := d.object(response + "/content/" + escape.Replace(kind))
	if media == nil {
		return []string{fmt.Sprintf("got content type %s, and the description has %d others", kind, len(content))}
	}
	var value any = x.Answer
	if strings.HasSuffix(kind, "json") && kind != "application/x-ndjson" {
		if value, err = jsonschema.UnmarshalJSON(strings.NewReader(x.Answer)); err != nil {
			return []string{err.Error()}
		}
	}
	if err := d.schema(t, at+"/schema").Validate(value); err != nil {
		return []string{fmt.Sprintf("the answer is not as described: %v", err)}
	}
	d.markExamples(at, value)
	return nil
}
