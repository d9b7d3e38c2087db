package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
)

// comments matches comments in code, which are translated.
var comments = regexp.MustCompile(`(?m)^(#|//) .*\n| +(#|//) .*$`)

// TestKoalaPagesAgree checks that the translation has the same files, commands,
// answers, headings and rows of tables.
func TestKoalaPagesAgree(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^(#+ |<a id=.*)`)
	of := map[string][2][]string{}
	for i, path := range koalaPages {
		page := readPage(t, path)
		text := fence.ReplaceAllString(page, "")
		add := func(what, part string) {
			lists := of[what]
			lists[i] = append(lists[i], part)
			of[what] = lists
		}
		for _, b := range fence.FindAllStringSubmatch(page, -1) {
			name, _, _ := strings.Cut(b[2], "\n")
			add("code", b[1]+"\n"+name+"\n"+comments.ReplaceAllString(b[2], ""))
		}
		for _, h := range heading.FindAllString(text, -1) {
			add("headings", h)
		}
		for _, cells := range rows(text) {
			add("rows", fmt.Sprint(len(cells), code(cells[0])))
		}
	}
	for what, lists := range of {
		english, chinese := append(lists[0], "the end"), append(lists[1], "the end")
		at := 0
		for english[at] == chinese[at] && at < min(len(english), len(chinese))-1 {
			at++
		}
		if english[at] != chinese[at] || len(english) != len(chinese) {
			t.Errorf("%s: number %d of the translation: got\n%s\nwant\n%s", what, at+1, chinese[at], english[at])
		}
	}
	if len(of["code"][0]) < 20 || len(of["rows"][0]) < 50 {
		t.Errorf("got %d blocks of code and %d rows, want the page's", len(of["code"][0]), len(of["rows"][0]))
	}
}

// rows returns the rows of the tables in text, as cells.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		const bar = "\x00"
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, bar), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], bar, "|"))
		}
		all = append(all, cells)
	}
	return all
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// code returns the code and the numbers in a cell.
func code(cell string) []string {
	if strings.Trim(cell, "0123456789") == "" {
		return []string{cell}
	}
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestKoalaPageRules compares the tables of rules that weir refuses, or reads
// differently, with the reader of rule files.
func TestKoalaPageRules(t *testing.T) {
	t.Parallel()
	page := readPage(t, koalaPages[0])
	everywhere := regexp.MustCompile(`multi/browse|midnight UTC`)
	for section, refused := range map[string]bool{"warned": false, "refused": true} {
		_, text, ok := strings.Cut(page, `<a id="`+section+`">`)
		if !ok {
			t.Fatalf("there is no section %s", section)
		}
		text, _, _ = strings.Cut(text, "<a id=")
		tried := 0
		for _, cells := range rows(text) {
			snippet := code(cells[0])
			if len(snippet) != 1 {
				continue // the head
			}
			tried++
			rule := snippet[0]
			if !strings.Contains(rule, "] [") {
				rule = "[count] [" + rule + "] [time=5; count=1]"
			}
			if strings.Count(rule, "[") == 3 {
				rule += " [result=2; return=1]"
			}
			const rest = "[result]\n1 : {}\n2 : {\"Err_no\":10}\n"
			f, err := koalafile.Parse("koala_rule.conf", []byte("[rules]\nrule : "+rule+"\n"+rest), nil)
			if refused != (err != nil) {
				t.Errorf("%s: got %v, want it refused: %t", rule, err, refused)
			}
			if err == nil && !slices.ContainsFunc(f.Warnings, func(w *fault.Fault) bool { return !everywhere.MatchString(w.Problem) }) {
				t.Errorf("%s: got %v, want a warning about it", rule, f.Warnings)
			}
		}
		if tried < 8 {
			t.Errorf("%s: got %d rules, want the page's", section, tried)
		}
	}
}

// TestKoalaPageConditions checks what the page says about other conditions: those
// without a message, and those that koala refused.
func TestKoalaPageConditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, value string
		want        bool
	}{
		{"[count] [k>5] [time=5; count=1]", "10.0.0.1", false},
		{"[count] [k=+] [time=5; count=1]", " ", false},
		{"[count] [k=1-9] [time=5; count=1]", "0.0.0.5", false},
		{"[count] [k=10.0.0.1-10.0.0.1] [time=5; count=1]", "010.0.0.1", true},
		{"[count] [k=10.0.0.1-10.0.0.1] [time=5; count=1]", "167772161", true},
		{"[count] [k=10.0.0.1-10.0.0.1] [time=5; count=1]", "10.0.0.+1", true},
		{"[count] [k>5] [time=5; count=1]", "9223372036854776832", true},
		{"[count] [k>5] [time=5; count=1]", "9223372036854776833", false},
		{"[count] [k=2001:db8::1-2001:db8::9] [time=5; count=1]", "2001:db8::2", true},
		{"[count] [k=1,5-7] [time=5; count=1]", "1", true},
		{"[count] [k=10.0.0.1,10.0.0.5-10.0.0.7] [time=5; count=1]", "10.0.0.1", true},
		{"[count] [k=+{~}] [time=5; count=1]", "x", true},
		{"[count] [k=a,b{*}] [time=5; count=1]", "b", true},
		{"[count] [k-IN-d] [time=5; count=1]", "listed", true},
		{"[count] [k-NOTIN-d] [time=5; count=1]", "listed", false},
		{"[count]  [k=a[1]][time=5; count=1]", "a[1]", true},
	} {
		file := "[dicts]\nd : d.dat\n[rules]\nrule : " + tt.rule + " [result=1; return=1]\n[result]\n1 : {\"Err_no\":10}\n"
		f, err := koalafile.Parse("koala_rule.conf", []byte(file), func(string) ([]byte, error) { return []byte("\ufefflisted\n"), nil })
		if err != nil {
			t.Fatalf("%s: got %v", tt.rule, err)
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s: got %v, want no warnings", tt.rule, f.Warnings)
		}
		if got := len(f.Set.Compiled().Match([]string{tt.value}, nil, false)) == 1; got != tt.want {
			t.Errorf("%s with %q: got %t, want %t", tt.rule, tt.value, got, tt.want)
		}
	}
}
