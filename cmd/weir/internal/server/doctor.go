package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/remote"
)

const (
	// doctorTimeout is the maximum duration of the checks of a command.
	doctorTimeout = 10 * time.Second

	// examineWithin is how long opening the store and checking its servers may
	// delay the start of the service. Where opening took all of it, because a
	// server stands still, the checks get examineAtLeast.
	examineWithin  = 2 * time.Second
	examineAtLeast = 100 * time.Millisecond
)

// diagnosis is the report of the checks, in JSON.
type diagnosis struct {
	Store    string           `json:"store"`
	Refused  int              `json:"refused"`
	Warnings int              `json:"warnings"`
	Findings []remote.Finding `json:"findings"`
}

// count returns how many findings have a level.
func count(findings []remote.Finding, level remote.Level) (n int) {
	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Doctor checks the servers of the store at a URL, and writes what it finds to
// out: a line for each check, or JSON. The error is that of a check that refuses
// a server, or, with strict, of one that warns.
func Doctor(ctx context.Context, store string, strict, asJSON bool, out io.Writer) error {
	at, err := storeAt(store)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	d := diagnosis{Store: at.Location}
	d.Findings, err = diagnose(ctx, at)
	if err != nil {
		f := remote.Finding{
			Check: "connection", Level: remote.LevelRefuse, Node: at.Servers,
			Seen:  seen(err),
			Means: "not checked", Fix: "the URL, the network, or the server",
		}
		var lacks interface {
			error
			Grant() string // what gives the user the rights that are missing
		}
		if errors.As(err, &lacks) {
			f.Check, f.Fix = "rights", lacks.Grant()
		}
		d.Findings = append(d.Findings, f)
	}
	d.Refused, d.Warnings = count(d.Findings, remote.LevelRefuse), count(d.Findings, remote.LevelWarn)
	if err := d.write(out, asJSON); err != nil {
		return err
	}
	switch {
	case d.Refused > 0:
		return fmt.Errorf("%d of %d checks refuse the server", d.Refused, len(d.Findings))
	case d.Warnings > 0 && strict:
		return fmt.Errorf("%d of %d checks warn of the server", d.Warnings, len(d.Findings))
	}
	return nil
}

// storeAt reads the URL of a store, which a command needs.
func storeAt(url string) (stores.Source, error) {
	if url == "" {
		return stores.Source{}, fault.Newf("store", "missing: give --store, or set WEIR_STORE")
	}
	return stores.Parse(url)
}

// inspectTimeout is the maximum duration of an inspection.
const inspectTimeout = 5 * time.Second

// Inspect writes what the store at a URL holds under the name of a key, as a page or as JSON.
func Inspect(ctx context.Context, store, key string, asJSON bool, out io.Writer) error {
	at, err := storeAt(store)
	if err != nil {
		return err
	}
	s, err := at.Open(ctx, stores.Options{Timeout: inspectTimeout})
	if err != nil {
		return err
	}
	defer s.Close()
	text, err := s.Inspect(ctx, key)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(inspection(text))
	}
	_, err = fmt.Fprint(out, text)
	return err
}

// inspected is a line of a page about a key, in JSON. Lines without a name belong to the one
// before.
type inspected struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// inspection returns the lines of a page. Each has a name of up to eight letters, and is indented
// otherwise.
func inspection(page string) (all []inspected) {
	const width = 9
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
		case line[0] == ' ' || len(line) < width:
			all = append(all, inspected{Value: strings.TrimSpace(line)})
		default:
			all = append(all, inspected{strings.TrimSpace(line[:width]), line[width:]})
		}
	}
	return all
}

// seen returns the text of an error on one line, without what the check says.
func seen(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", ", ")
	for _, said := range []string{"weir: ", "store unavailable: "} {
		text = strings.TrimPrefix(text, said)
	}
	return text
}

// diagnose opens the store for the checks alone.
func diagnose(ctx context.Context, at stores.Source) ([]remote.Finding, error) {
	s, err := at.Open(ctx, stores.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	findings, err := s.Diagnose(ctx)
	if err != nil {
		return findings, err
	}
	return append(findings, clockRates(ctx, s, at.Servers, len(s.Nodes()))), nil
}

// write writes the report.
func (d *diagnosis) write(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(d)
	}
	node := ""
	several := slices.ContainsFunc(d.Findings, func(f remote.Finding) bool { return f.Node != d.Findings[0].Node })
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		if several && f.Node != node {
			node = f.Node
			fmt.Fprintf(w, "%s\n", node)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Check, f)
	}
	return w.Flush()
}

// examine checks the servers of the shared store until a deadline, and logs each
// warning. The error is that of a server that does not fit. Servers that are out
// of reach are no error.
func (c *backends) examine(ctx context.Context, deadline time.Time, log *slog.Logger) error {
	if c.shared == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(deadline), examineAtLeast))
	defer cancel()
	findings, err := c.shared.Diagnose(ctx)
	if err != nil {
		log.Info("store not checked", "store", c.place, "reason", err)
	}
	for _, f := range findings {
		switch f.Level {
		case remote.LevelRefuse:
			return fmt.Errorf("store %s: %s does not fit: %s: %s", c.place, f.Node, f.Check, f)
		case remote.LevelWarn:
			log.Warn("store check: "+f.Check, "node", f.Node, "seen", f.Seen, "means", f.Means, "fix", f.Fix)
		}
	}
	return nil
}
