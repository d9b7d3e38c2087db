// Command terminal runs the session of the README and draws it as an animated SVG:
//
//	go build -o /tmp/weir ./cmd/weir
//	go run ./cmd/weir/internal/terminal /tmp/weir docs/images/terminal.svg
package main

import (
	"bufio"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const rules = `rules:
  - name: posts-per-hour
    when: {action: post}
    per: [user]
    limit: 5
    window: 1h
`

// commands are what the session types, after the start of the service.
var commands = []string{
	"for i in 1 2 3 4 5 6; do weir take action=post user=42 | head -n 1; done",
	"weir take action=post user=ann",
	"weir explain action=post user=42",
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: terminal WEIR FILE")
	}
	weir, err := filepath.Abs(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lines, err := session(weir)
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(draw(lines)), 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// line is one line on the terminal. A line that is typed starts with a prompt.
type line struct {
	text  string
	typed bool
}

// session runs the commands with the program weir and returns what a terminal
// shows.
func session(weir string) (lines []line, err error) {
	dir, err := os.MkdirTemp("", "terminal")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is in a directory for temporary files
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "PATH="+filepath.Dir(weir)+string(os.PathListSeparator)+os.Getenv("PATH"))
	typed := func(command, out string) {
		lines = append(lines, line{command, true})
		for text := range strings.Lines(out) {
			lines = append(lines, line{strings.TrimRight(text, "\n"), false})
		}
	}
	shell := func(command string) {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		var out []byte
		if out, err = cmd.Output(); err == nil {
			typed(command, string(out))
		} else {
			err = fmt.Errorf("%s: %w", command, err)
		}
	}
	for _, command := range []string{"cat rules.yaml", "weir check rules.yaml"} {
		if shell(command); err != nil {
			return nil, err
		}
	}
	serve := exec.Command(weir, "serve", "--rules", "rules.yaml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	serve.Dir = dir
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = serve.Process.Kill() // it has no counts to keep
		_ = serve.Wait()
	}()
	r := bufio.NewReader(out)
	greeting, _ := r.ReadString('\n')
	count, _ := r.ReadString('\n')
	at := regexp.MustCompile(`http://\S+\d`).FindAllString(greeting, 2)
	if len(at) != 2 {
		return nil, fmt.Errorf("weir serve greets with %q", greeting+count)
	}
	env = append(env, "WEIR_ADDR="+at[0])
	typed("weir serve --rules rules.yaml &", strings.NewReplacer(at[0], "http://127.0.0.1:8080", at[1], "http://127.0.0.1:8081").Replace(greeting+count))
	for _, command := range commands {
		if shell(command); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

const (
	height = 19   // pixels of a line
	pause  = 2.6  // seconds before a command
	step   = 0.25 // seconds before a line of output
)

// draw returns the SVG. Lines appear one after the other, once.
func draw(lines []line) string {
	var b strings.Builder
	h := height*len(lines) + 58
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 %d" width="880" role="img" aria-label="A session in a terminal">
<style>
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #c9d1d9; white-space: pre; animation: show 0.01s both }
.typed { fill: #7ee787 } .no { fill: #ff7b72 }
@keyframes show { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="880" height="%d" rx="8" fill="#0d1117"/>
<circle cx="20" cy="18" r="6" fill="#ff5f56"/><circle cx="40" cy="18" r="6" fill="#ffbd2e"/><circle cx="60" cy="18" r="6" fill="#27c93f"/>
`, h, h)
	at := 0.0
	for i, l := range lines {
		class, text := "", l.text
		switch {
		case l.typed:
			class, text = ` class="typed"`, "$ "+text
			if i > 0 {
				at += pause
			}
		case strings.HasPrefix(text, "denied"):
			class = ` class="no"`
		}
		fmt.Fprintf(&b, "<text xml:space=\"preserve\"%s x=\"18\" y=\"%d\" style=\"animation-delay:%.2fs\">%s</text>\n", class, height*i+52, at, html.EscapeString(text))
		at += step
	}
	b.WriteString("</svg>\n")
	return b.String()
}
