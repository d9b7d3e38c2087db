package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weirhq/weir/internal/printable"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// inColour returns w, with colours if it is a terminal and they are not turned off.
func inColour(cmd *cobra.Command, w io.Writer) io.Writer {
	off, _ := cmd.Flags().GetBool("no-color") // false if there was no flag to parse
	if off || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return w
	}
	return highlighter{w}
}

// colour makes cmd print in colours where the terminal shows them.
func colour(cmd *cobra.Command) {
	cmd.SetOut(inColour(cmd, cmd.OutOrStdout()))
	cmd.SetErr(inColour(cmd, cmd.ErrOrStderr()))
}

// highlighter colours words in the lines that are written to it. Each write has whole lines.
type highlighter struct{ to io.Writer }

// highlights are the words, and their colours.
var highlights = []struct {
	words *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`(?m)^warning:`), "\x1b[33m$0\x1b[0m"},
	{regexp.MustCompile(`(?m)^(weir:|FAIL\b)`), "\x1b[31m$0\x1b[0m"},
	{regexp.MustCompile(`(?m)^[ \t]*\^$`), "\x1b[31m$0\x1b[0m"}, // below the place of a fault
	{regexp.MustCompile(`(?m)(^ok |, ok$)`), "\x1b[32m$0\x1b[0m"},
}

func (h highlighter) Write(p []byte) (int, error) {
	text := p
	for _, l := range highlights {
		text = l.words.ReplaceAll(text, []byte(l.with))
	}
	_, err := h.to.Write(text)
	return len(p), err
}

// harmless is a terminal to which text of callers is written, without what the terminal would take for commands. Each write
// has whole lines.
type harmless struct{ to io.Writer }

// ofCallers returns w, or a [harmless] if it is a terminal.
func ofCallers(w io.Writer) io.Writer {
	to := w
	if h, ok := w.(highlighter); ok {
		to = h.to
	}
	if !isTerminal(to) {
		return w
	}
	return harmless{to}
}

func (h harmless) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		text := strings.TrimRight(line, "\r\n")
		b.WriteString(printable.Text(text) + line[len(text):])
	}
	_, err := io.WriteString(h.to, b.String())
	return len(p), err
}

// ReadFrom implements [io.ReaderFrom], for [io.Copy]: it makes each write a line.
func (h harmless) ReadFrom(from io.Reader) (n int64, err error) {
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		n += int64(len(line))
		if _, failed := io.WriteString(h, line); failed != nil || errors.Is(err, io.EOF) {
			return n, failed
		}
		if err != nil {
			return n, err
		}
	}
}
