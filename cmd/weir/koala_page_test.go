package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/koalafile"
	"github.com/weirhq/weir/store/redisstore/redistest"
)

// koalaPages are the page for those who come from koala, and its translation.
var koalaPages = []string{"../../docs/koala.md", "../../docs/koala.zh.md"}

func readPage(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// TestKoalaPages moves from koala to weir as the pages tell: it writes their
// files, runs their commands in order, and holds their answers to what happens.
func TestKoalaPages(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	for i, path := range koalaPages {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			m := mover{t: t, home: t.TempDir(), redis: fmt.Sprintf("redis://%s/%d?timeout=10s", redis.Addr(), i)}
			blocks := fence.FindAllStringSubmatch(readPage(t, path), -1)
			for i, b := range blocks {
				want := ""
				if i+1 < len(blocks) && blocks[i+1][1] == "text" {
					want = blocks[i+1][2]
				}
				m.follow(b[1], b[2], want)
			}
			m.stop()
			if m.answers < 30 {
				t.Errorf("got %d answers, want the page's", m.answers)
			}
		})
	}
}

// mover follows a page in a home of koala's.
type mover struct {
	t       *testing.T
	home    string
	redis   string // URL, for redis://127.0.0.1:6379
	service *exec.Cmd
	koala   string // URL of koala's calls, for port 9981 and 9982
	api     string // for port 8080
	admin   string // for port 8081
	said    strings.Builder
	answers int
}

// follow does what one block of code asks, which want is the answer to.
func (m *mover) follow(language, text, want string) {
	m.t.Helper()
	m.said.Reset()
	switch language {
	case "ini":
		m.write(text)
		return
	case "php":
		m.php(text, want)
		return
	case "yaml":
		_, rule, _ := strings.Cut(text, "\n") // behind the line rules:
		if all, err := os.ReadFile(filepath.Join(m.home, "rules.yaml")); err != nil || !strings.Contains(string(all), rule) {
			m.t.Errorf("got %v, %s\nwithout\n%s", err, all, rule)
		}
		return
	case "sh":
		for line := range strings.Lines(text) {
			m.command(strings.TrimSpace(line))
		}
	default:
		return
	}
	if want == "" {
		return
	}
	m.answers += strings.Count(m.said.String(), "\n")
	if diff := misses(shape(m.said.String()), shape(want)); diff != "" {
		m.t.Errorf("%sgot\n%swant %s", text, m.said.String(), diff)
	}
}

// misses is what of want is not in got: all of it unless they are the same,
// line by line, but where want has a line … for any number of others.
func misses(got, want string) string {
	lines := strings.Split(got, "\n")
	for part := range strings.SplitSeq("\n"+want, "\n…") {
		for line := range strings.SplitSeq(strings.Trim(part, "\n"), "\n") {
			at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(line) })
			if at < 0 {
				return line
			}
			lines = lines[at+1:]
		}
	}
	if !strings.Contains(want, "…") && strings.Count(got, "\n") != strings.Count(want, "\n") {
		return want
	}
	return ""
}

// write writes a file whose first line has its name.
func (m *mover) write(text string) {
	m.t.Helper()
	name, ok := strings.CutPrefix(text[:strings.IndexByte(text, '\n')], "# ")
	if !ok {
		m.t.Fatalf("a file without its name:\n%s", text)
	}
	path := filepath.Join(m.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// command runs one line of a shell.
func (m *mover) command(line string) {
	m.t.Helper()
	switch {
	case strings.HasPrefix(line, "bin/koala_ctl "):
		// Koala's own.
	case strings.Contains(line, "weir serve "):
		m.serve(line)
	case strings.HasPrefix(line, "curl "):
		m.curl(line)
	default:
		out, err := m.shell(line).CombinedOutput()
		if err != nil {
			m.t.Errorf("%s: %v\n%s", line, err, out)
		}
		m.said.Write(out)
	}
}

func (m *mover) shell(line string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "sh", "-c", line)
	cmd.Dir = m.home
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}

var greeting = regexp.MustCompile(`^weir listens on (\S+), its admin on (\S+)\nkoala's calls: (\S+)\n$`)

// serve starts the service that line asks for, on free ports and on a Redis of
// the test where the line has one, in place of the one that runs.
func (m *mover) serve(line string) {
	m.t.Helper()
	m.stop()
	line = strings.Replace(line, "redis://127.0.0.1:6379", "'"+m.redis+"'", 1)
	if strings.Contains(line, "--koala-config") {
		line += " --store '" + m.redis + "'" // the file can name no database
	}
	cmd := m.shell("exec env " + line + " --listen 127.0.0.1:0 --admin 127.0.0.1:0 --koala-listen 127.0.0.1:0")
	cmd.Stderr = m.t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.service = cmd
	m.t.Cleanup(m.stop)
	r := bufio.NewReader(out)
	first, _ := r.ReadString('\n')
	second, _ := r.ReadString('\n')
	at := greeting.FindStringSubmatch(first + second)
	if at == nil {
		m.t.Fatalf("%s: got %q", line, first+second)
	}
	m.api, m.admin, m.koala = at[1], at[2], at[3]
}

// stop ends the service that runs, if one does.
func (m *mover) stop() {
	if m.service == nil {
		return
	}
	_ = m.service.Process.Signal(syscall.SIGTERM) // when it has ended, Wait tells
	if err := m.service.Wait(); err != nil {
		m.t.Errorf("the service ends with %v", err)
	}
	m.service = nil
}

// word is an argument in single quotes, or without quotes and blanks.
var word = regexp.MustCompile(`'([^']*)'|([^'\s]+)`)

// curl makes the call that a command makes, and notes its answer.
func (m *mover) curl(line string) {
	m.t.Helper()
	var args []string
	for _, w := range word.FindAllStringSubmatch(line, -1) {
		args = append(args, w[1]+w[2])
	}
	method, target, body := http.MethodGet, "", ""
	header := http.Header{}
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-sw":
			i++
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			method, body = http.MethodPost, args[i]
		case "--data-urlencode":
			i++
			name, file, _ := strings.Cut(args[i], "@")
			text, err := os.ReadFile(filepath.Join(m.home, file))
			if err != nil {
				m.t.Fatal(err)
			}
			method, body = http.MethodPost, name+"="+url.QueryEscape(string(text))
		default:
			target = m.found(args[i])
		}
	}
	req, err := http.NewRequestWithContext(m.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		m.t.Fatalf("%s: %v", line, err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatalf("%s: %v", line, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatalf("%s: %v", line, err)
	}
	fmt.Fprintln(&m.said, strings.TrimRight(string(answer), "\n"))
}

// found is text with the addresses of the service that runs.
func (m *mover) found(text string) string {
	return strings.NewReplacer(
		"http://127.0.0.1:9981", m.koala, "http://127.0.0.1:9982", m.koala,
		"http://127.0.0.1:8080", m.api, "http://127.0.0.1:8081", m.admin).Replace(text)
}

// php runs a program, where there is PHP.
func (m *mover) php(text, want string) {
	m.t.Run("php", func(t *testing.T) {
		php, err := exec.LookPath("php")
		if err != nil {
			t.Skipf("%v: install php-cli to run the page's program", err)
		}
		cmd := exec.CommandContext(t.Context(), php)
		cmd.Stdin = strings.NewReader(m.found(text))
		got, err := cmd.CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
		}
	})
}

// comments are those in code, which are translated.
var comments = regexp.MustCompile(`(?m)^(#|//) .*\n| +(#|//) .*$`)

// TestKoalaPagesAgree holds the translation to the same files, commands,
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
		for i := range max(len(lists[0]), len(lists[1])) {
			if i >= len(lists[0]) || i >= len(lists[1]) || lists[0][i] != lists[1][i] {
				t.Errorf("%s: got %d and %d, want the same; they part at\n%s\nand\n%s", what, len(lists[0]), len(lists[1]),
					strings.Join(lists[0][min(i, len(lists[0])):min(i+1, len(lists[0]))], ""),
					strings.Join(lists[1][min(i, len(lists[1])):min(i+1, len(lists[1]))], ""))
				break
			}
		}
	}
	if len(of["code"][0]) < 20 || len(of["rows"][0]) < 60 {
		t.Errorf("got %d blocks of code and %d rows, want the page's", len(of["code"][0]), len(of["rows"][0]))
	}
}

// rows are the rows of the tables in text, by cells.
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

// code is what of a cell is code or a number.
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

// TestKoalaPageRules holds the tables of rules that weir refuses, or reads
// otherwise, to what the reader of rule files says.
func TestKoalaPageRules(t *testing.T) {
	t.Parallel()
	page := readPage(t, koalaPages[0])
	everywhere := regexp.MustCompile(`multi/browse|midnight UTC|does not write`)
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
			if rule[0] != '[' {
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
			if err == nil && !slices.ContainsFunc(f.Warnings, func(w koalafile.Fault) bool { return !everywhere.MatchString(w.Problem) }) {
				t.Errorf("%s: got %v, want a warning about it", rule, f.Warnings)
			}
		}
		if tried < 10 {
			t.Errorf("%s: got %d rules, want the page's", section, tried)
		}
	}
}
