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

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/redistest"
)

// koalaPages are the page about the move from koala, and its translation.
var koalaPages = []string{"../../docs/from/koala.md", "../../docs/zh/from/koala.md"}

// TestKoalaPages moves from koala to weir as the pages describe. It writes their
// files, runs their commands in order, and compares the answers.
func TestKoalaPages(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	for i, path := range koalaPages {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			blocks := fence.FindAllStringSubmatch(readFile(t, path), -1)
			for database := i; ; database += len(koalaPages) {
				m := mover{t: t, home: t.TempDir(), redis: fmt.Sprintf("redis://%s/%d?timeout=10s", redis.Addr(), database)}
				m.followAll(blocks)
				if m.degraded && database < 10 {
					continue // the machine stalled, and some calls were not counted
				}
				for _, f := range m.faults {
					t.Error(f)
				}
				if m.answers < 30 {
					t.Errorf("got %d answers, want the page's", m.answers)
				}
				return
			}
		})
	}
}

// mover follows a page in a temporary directory.
type mover struct {
	t       *testing.T
	home    string
	redis   string // URL, for redis://127.0.0.1:6379
	service *exec.Cmd
	koala   string // URL of koala's calls, for port 9981 and 9982
	api     string // for port 8080
	admin   string // for port 8081
	said    strings.Builder

	answers  int
	faults   []string // differences from the page
	degraded bool     // a service decided without Redis
}

// followAll follows all blocks of code of a page.
func (m *mover) followAll(blocks [][]string) {
	m.t.Helper()
	for i, b := range blocks {
		want := ""
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			want = blocks[i+1][2]
		}
		m.follow(b[1], b[2], want)
	}
	m.stop()
}

func (m *mover) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// follow executes one block of code. want is the block with its answer.
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
			m.fault("got %v, %s\nwithout\n%s", err, all, rule)
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
		m.fault("%sgot\n%swant %s", text, m.said.String(), diff)
	}
}

// misses returns the first line of want that is not in got, in want's order, or ""
// if got has all. Unless want has a line …, which stands for other lines, got must
// have no other lines.
func misses(got, want string) string {
	lines := strings.Split(got, "\n")
	others := len(lines) > strings.Count(want, "\n")+1
	for line := range strings.SplitSeq(want, "\n") {
		if line == "…" {
			others = false
			continue
		}
		at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(line) })
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}
	if others {
		return "nothing else"
	}
	return ""
}

// write writes a file. The first line of the block has its name.
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
		// one of koala's own commands
	case strings.Contains(line, "weir serve "):
		m.serve(line)
	case strings.HasPrefix(line, "curl "):
		m.curl(line)
	default:
		out, err := m.shell(line).CombinedOutput()
		if err != nil {
			m.fault("%s: %v\n%s", line, err, out)
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

var greeting = regexp.MustCompile(`^weir listens on (\S+), its admin on (\S+)\npage: \S+/\nkoala's calls: (\S+)\n$`)

// serve starts the service in line, and ends the one that runs. Ports are free
// ones; if the line has a Redis, it is that of the test.
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
	said := ""
	for range 3 { // the addresses, the page, koala's calls
		next, _ := r.ReadString('\n')
		said += next
	}
	at := greeting.FindStringSubmatch(said)
	if at == nil {
		m.t.Fatalf("%s: got %q", line, said)
	}
	m.api, m.admin, m.koala = at[1], at[2], at[3]
}

// stop ends the running service, if there is one.
func (m *mover) stop() {
	if m.service == nil {
		return
	}
	if resp, err := http.Get(m.admin + "/metrics"); err == nil {
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		m.degraded = m.degraded || !strings.Contains(string(text), "\nweir_decisions_degraded_total{namespace=\"default\"} 0\n")
	}
	_ = m.service.Process.Signal(syscall.SIGTERM) // if it has ended, Wait returns the error
	if err := m.service.Wait(); err != nil {
		m.fault("the service ends with %v", err)
	}
	m.service = nil
}

// word matches an argument in single quotes, or without quotes and blanks.
var word = regexp.MustCompile(`'([^']*)'|([^'\s]+)`)

// curl makes the call of a curl command, and keeps the answer.
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

// found returns text with the addresses of the running service.
func (m *mover) found(text string) string {
	return strings.NewReplacer(
		"http://127.0.0.1:9981", m.koala, "http://127.0.0.1:9982", m.koala,
		"http://127.0.0.1:8080", m.api, "http://127.0.0.1:8081", m.admin).Replace(text)
}

// php runs a PHP program, if PHP is installed.
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

// comments matches comments in code, which are translated.
var comments = regexp.MustCompile(`(?m)^(#|//) .*\n| +(#|//) .*$`)

// TestKoalaPagesAgree checks that the translation has the same files, commands,
// answers, headings and rows of tables.
func TestKoalaPagesAgree(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^(#+ |<a id=.*)`)
	of := map[string][2][]string{}
	for i, path := range koalaPages {
		page := readFile(t, path)
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
	page := readFile(t, koalaPages[0])
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
