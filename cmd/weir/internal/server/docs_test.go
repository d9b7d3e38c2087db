package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/apitest"
)

// fence is one block of code in a document.
type fence struct{ language, text string }

var fences = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```\n")

func read(t *testing.T, path string) []fence {
	t.Helper()
	src := readFile(t, path)
	var list []fence
	for _, m := range fences.FindAllStringSubmatch(src, -1) {
		list = append(list, fence{m[1], m[2]})
	}
	return list
}

// TestDocs runs the examples of the manual in order: each curl is followed by
// its answer. Durations, moments, hashes and paths may differ.
func TestDocs(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../../../docs/reference/http.md")
	if len(blocks) == 0 || blocks[0].language != "yaml" {
		t.Fatalf("got %d blocks, want rules first", len(blocks))
	}
	s := start(t, withRules(rulesFile(t, blocks[0].text), false))
	if examples := s.follow(t, blocks); examples < 10 {
		t.Errorf("got %d examples, want the manual's", examples)
	}
}

// follow sends each curl among blocks, and compares the answer with the block
// after it. It returns the number of calls.
func (s *service) follow(t *testing.T, blocks []fence) (examples int) {
	t.Helper()
	receipts := strings.NewReplacer()
	for i, b := range blocks {
		if b.language != "sh" || i+1 == len(blocks) {
			continue
		}
		examples++
		status, header, body := s.curl(t, receipts.Replace(b.text))
		switch want := blocks[i+1]; want.language {
		case "json":
			if status != http.StatusOK {
				t.Errorf("%sgot %d, want 200", b.text, status)
			}
			sameJSON(t, b.text, body, want.text)
			if written := receipt(want.text); written != "" {
				receipts = strings.NewReplacer(written, receipt(body))
			}
		case "http":
			sameAnswer(t, b.text, status, header, body, want.text)
		case "text":
			for line := range strings.Lines(want.text) {
				if !strings.Contains(body, line) {
					t.Errorf("%sgot no line %s", b.text, line)
				}
			}
		default:
			t.Errorf("%sgot no answer after it but %s", b.text, want.language)
		}
	}
	return examples
}

// receipt returns the receipt in an answer, or "". Receipts are random.
func receipt(answer string) string {
	var d struct{ Receipt string }
	_ = json.Unmarshal([]byte(answer), &d) // sameJSON reports text that is no JSON
	return d.Receipt
}

// word is an argument in single quotes, or without quotes and blanks.
var word = regexp.MustCompile(`'([^']*)'|([^'\s\\]+)`)

// curl sends the request of a curl command, and checks the exchange against the
// description of the API.
func (s *service) curl(t *testing.T, command string) (int, http.Header, string) {
	t.Helper()
	var args []string
	for _, m := range word.FindAllStringSubmatch(command, -1) {
		args = append(args, m[1]+m[2])
	}
	method, url, data := http.MethodGet, "", ""
	headers := http.Header{}
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-i":
		case "-X":
			i++
			method = args[i]
		case "-d":
			i++
			data = args[i]
			if method == http.MethodGet { // without -X
				method = http.MethodPost
			}
			headers.Set("Content-Type", "application/x-www-form-urlencoded")
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ":")
			headers.Set(name, strings.TrimSpace(value))
		default:
			url = args[i]
		}
	}
	url = strings.NewReplacer("localhost:8080", s.api, "localhost:8081", s.admin).Replace(url)
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(data))
	if err != nil {
		t.Fatalf("%s%v", command, err)
	}
	req.Header = headers
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s%v", command, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s%v", command, err)
	}
	apitest.Load(t).Check(t, &apitest.Exchange{
		Method: method, URL: req.URL.RequestURI(), Header: headers, Body: data,
		Status: resp.StatusCode, Got: resp.Header, Answer: string(body),
	})
	return resp.StatusCode, resp.Header, string(body)
}

// seconds matches numbers in headers that count down.
var seconds = regexp.MustCompile(`t=\d+|^\d+$`)

// sameAnswer compares an answer with one that is written out. It ignores
// headers that are not written out.
func sameAnswer(t *testing.T, command string, status int, header http.Header, body, text string) {
	t.Helper()
	want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text+"\n")), nil)
	if err != nil {
		t.Fatalf("%s%v", command, err)
	}
	defer want.Body.Close()
	if status != want.StatusCode {
		t.Errorf("%sgot %d, want %d", command, status, want.StatusCode)
	}
	for name := range want.Header {
		got, want := seconds.ReplaceAllString(header.Get(name), "N"), seconds.ReplaceAllString(want.Header.Get(name), "N")
		if got != want {
			t.Errorf("%sgot %s: %s, want %s", command, name, got, want)
		}
	}
	rest, err := io.ReadAll(want.Body)
	if err != nil {
		t.Fatalf("%s%v", command, err)
	}
	wantBody := strings.TrimSpace(string(rest))
	if strings.HasPrefix(wantBody, "{") {
		sameJSON(t, command, body, wantBody)
	} else if strings.TrimSpace(body) != wantBody {
		t.Errorf("%sgot %s, want %s", command, body, wantBody)
	}
}

func sameJSON(t *testing.T, command, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%sgot %s, want JSON: %v", command, got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%sthe answer in the manual: %v", command, err)
	}
	if !reflect.DeepEqual(lasting(g), lasting(w)) {
		t.Errorf("%sgot  %s\nwant %s", command, got, want)
	}
}

// lasting returns v without what differs from run to run. Whether a wait is
// zero, positive or forever stays.
func lasting(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = lasting(v[i])
		}
	case map[string]any:
		for name, value := range v {
			n, isNumber := value.(float64)
			switch {
			case name == "hash" || name == "file" || name == "loaded" || name == "start" || name == "since" || name == "oldest" || name == "time" || name == "receipt" || name == "banned_until" || name == "set":
				v[name] = "some"
			case (name == "retry_after" || name == "reset_after") && isNumber && n > 0:
				v[name] = "some"
			default:
				v[name] = lasting(value)
			}
		}
	}
	return v
}
