package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weirhq/weir/internal/printable"
)

func newTop() *cobra.Command {
	var c client
	var once bool
	every := time.Second
	cmd := &cobra.Command{
		Use:   "top [RULE]",
		Short: "Show the keys that use rules most, and those that are denied most",
		Long: `Show, for each rule or for one, the keys with the most hits, the keys with the
most denied takes, and recent denials. The numbers are those of one instance, of
the last five to ten minutes.

In a terminal the numbers are live: space pauses and resumes, q ends. Elsewhere,
and with --once, they are printed once. The column ERROR shows by how much a
count can be too high. It is missing if all counts are exact.`,
		Example: "  weir top\n  weir top posts-per-hour --every 5s\n  weir top --once | head\n  weir top posts-per-hour --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 100*time.Millisecond {
				return &usageError{"--every: want at least 100ms"}
			}
			w := topWatch{client: &c, every: every}
			if len(args) > 0 {
				w.rule = args[0]
			}
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			if c.json {
				answer, err := c.call(ctx, http.MethodGet, "/v1/top"+w.query(), nil)
				if err == nil {
					_, err = out.Write(answer)
				}
				return err
			}
			if !once && isTerminal(out) {
				return w.live(ctx, out.(*os.File))
			}
			return w.print(ctx, out)
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print once")
	cmd.Flags().DurationVar(&every, "every", every, "time between two looks")
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

// topWatch polls the top keys of a service.
type topWatch struct {
	client *client
	rule   string // empty: all rules
	every  time.Duration

	view topView
	at   time.Time // of view
}

// query returns the query for the service.
func (w *topWatch) query() string {
	if w.rule == "" {
		return "?n=100"
	}
	return "?n=100&rule=" + url.QueryEscape(w.rule)
}

// poll asks the service.
func (w *topWatch) poll(ctx context.Context) error {
	next := topView{before: w.view.top, zone: time.Local}
	top, err := w.client.call(ctx, http.MethodGet, "/v1/top"+w.query(), nil)
	if err != nil {
		return err
	}
	now := time.Now()
	recent, err := w.client.call(ctx, http.MethodGet, "/v1/denials"+w.query(), nil)
	if err != nil {
		return err
	}
	var denials denialsAnswer
	if err := cmp.Or(parse(top, &next.top), parse(recent, &denials)); err != nil {
		return err
	}
	next.denials = denials.Denials
	if !w.at.IsZero() {
		next.elapsed = now.Sub(w.at)
	}
	w.view, w.at = next, now
	return nil
}

// print prints the numbers once.
func (w *topWatch) print(ctx context.Context, out io.Writer) error {
	if err := w.poll(ctx); err != nil {
		return err
	}
	w.view.denials = w.view.denials[:min(len(w.view.denials), 10)]
	_, err := fmt.Fprintln(out, strings.Join(w.view.lines(size{}), "\n"))
	return err
}

// Control sequences of terminals.
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	screenClose = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineRest    = "\x1b[K" // clears the rest of the line
	lineEnd     = lineRest + "\r\n"
	screenRest  = "\x1b[J" // clears the lines below
	bold, plain = "\x1b[1m", "\x1b[0m"
)

// live shows the numbers on a terminal until the user ends it.
func (w *topWatch) live(ctx context.Context, out *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := w.poll(ctx); err != nil {
		return err
	}
	var keys chan rune
	if in := int(os.Stdin.Fd()); isTerminal(os.Stdin) {
		old, err := term.MakeRaw(in)
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(in, old) }()
		keys = make(chan rune)
		go readKeys(os.Stdin, keys) // until the program ends
	}
	fmt.Fprint(out, screenOpen)
	defer fmt.Fprint(out, screenClose)
	timer := time.NewTicker(w.every)
	defer timer.Stop()
	stopped, problem := false, ""
	for {
		s := size{80, 24}
		if width, height, err := term.GetSize(int(out.Fd())); err == nil && width > 0 && height > 0 {
			s = size{width, height}
		}
		if _, err := io.WriteString(out, w.screen(s, stopped, problem)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			switch key {
			case 'q', 'Q', ctrlC:
				return nil
			case ' ':
				stopped = !stopped
			}
			continue
		case <-timer.C:
		}
		if stopped {
			continue
		}
		problem = ""
		if err := w.poll(ctx); err != nil {
			problem = message(err)
		}
	}
}

// ctrlC is what a terminal in raw mode sends for Ctrl-C.
const ctrlC = '\x03'

// readKeys sends the keys that in has to keys, and q at its end.
func readKeys(in io.Reader, keys chan<- rune) {
	r := bufio.NewReader(in)
	for {
		key, _, err := r.ReadRune()
		if err != nil {
			key = 'q'
		}
		keys <- key
	}
}

// screen returns the text of a whole screen.
func (w *topWatch) screen(s size, stopped bool, problem string) string {
	head := fmt.Sprintf("weir top  %s  every %v  q: end, space: pause  %s", w.view.clock(w.at), w.every, w.client.addr)
	if stopped {
		head = fmt.Sprintf("weir top  %s  PAUSED  q: end, space: resume  %s", w.view.clock(w.at), w.client.addr)
	}
	if problem != "" {
		head = printable.Text(problem)
	}
	var b strings.Builder
	b.WriteString(screenHome + bold + cut(head, s.width) + plain + lineEnd)
	b.WriteString(strings.Join(w.view.lines(size{s.width, max(s.height-1, 1)}), lineEnd))
	b.WriteString(lineRest + screenRest)
	return b.String()
}
