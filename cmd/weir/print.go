package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// The part of the service's JSON that is printed. Numbers that an answer can
// leave out are pointers.
type (
	request struct {
		Attributes map[string]string `json:"attributes"`
		Hits       int64             `json:"hits"`
		Feedback   string            `json:"feedback,omitempty"`
		Key        idempotencyKey    `json:"idempotency_key,omitempty"`
	}
	ending struct {
		Receipt    string            `json:"receipt"`
		Attributes map[string]string `json:"attributes"`
		Hits       *int64            `json:"hits,omitempty"`
		Key        idempotencyKey    `json:"idempotency_key,omitempty"`
	}
	decision struct {
		Allowed    bool     `json:"allowed"`
		Outcome    string   `json:"outcome"`
		Rule       string   `json:"rule"`
		RetryAfter seconds  `json:"retry_after"`
		RetryRule  string   `json:"retry_rule"`
		Limits     []usage  `json:"limits"`
		Verdicts   []string `json:"verdicts"`
		Triggered  []string `json:"triggered"`
		Unmatched  bool     `json:"unmatched"`
		Replayed   bool     `json:"replayed"`
		Degraded   bool     `json:"degraded"`
		Reason     string   `json:"degraded_reason"`
		Receipt    string   `json:"receipt"`

		ended string // the verb, for an answer about holds
	}
	usage struct {
		Rule       string  `json:"rule"`
		Kind       string  `json:"kind"`
		Shadow     bool    `json:"shadow"`
		Key        string  `json:"key"`
		Quota      *int64  `json:"quota"`
		Used       int64   `json:"used"`
		Remaining  *int64  `json:"remaining"`
		ResetAfter seconds `json:"reset_after"`
		Series     []struct {
			Start time.Time `json:"start"`
			Hits  int64     `json:"hits"`
		} `json:"series"`
		Degraded    bool       `json:"degraded"`
		Held        bool       `json:"held"`
		Counted     *bool      `json:"counted"`
		Holds       int        `json:"holds"`
		BannedUntil *time.Time `json:"banned_until"`
		Strikes     int64      `json:"strikes"`
		Override    bool       `json:"override"`
	}
	explanation struct {
		Decision decision `json:"decision"`
		Rules    []struct {
			Rule    string   `json:"rule"`
			Matched bool     `json:"matched"`
			Reasons []string `json:"reasons"`
		} `json:"rules"`
	}
)

// seconds is a duration in the API's JSON. A negative one means never.
type seconds float64

func (s seconds) String() string {
	if s < 0 {
		return "never"
	}
	return time.Duration(float64(s) * float64(time.Second)).Round(time.Millisecond).String()
}

// tell calls the service for an answer that is empty. With --json it prints that it is done.
func (c *client) tell(cmd *cobra.Command, method, path string, body any, done string) error {
	answer, err := c.call(cmd.Context(), method, path, body)
	if err == nil && len(answer) > 0 {
		err = notWeir(fmt.Errorf("it has a body: %.40q", answer))
	}
	if err != nil || !c.json {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "{%q:true}\n", done)
	return err
}

// ask calls the service and prints the answer: unchanged with --json, and otherwise parsed into
// into and as tables.
func (c *client) ask(cmd *cobra.Command, method, path string, body any, into interface{ print(io.Writer) }) error {
	answer, err := c.call(cmd.Context(), method, path, body)
	if err != nil {
		return err
	}
	if err := parse(answer, into); err != nil {
		return err
	}
	if c.json {
		_, err := cmd.OutOrStdout().Write(answer)
		return err
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	into.print(w)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), clean(text.String())) // a service could send control sequences
	return err
}

// parse decodes an answer into v. An answer of the API has at least one of v's fields.
func parse(answer []byte, v any) error {
	var fields, known map[string]any
	if text, err := json.Marshal(v); err != nil || json.Unmarshal(text, &known) != nil {
		panic(err) // v has no JSON: a bug in this package
	}
	if err := cmp.Or(json.Unmarshal(answer, &fields), json.Unmarshal(answer, v)); err != nil {
		return notWeir(err)
	}
	for name := range fields {
		if _, ok := known[name]; ok {
			return nil
		}
	}
	return notWeir(fmt.Errorf("it is %.40q", answer))
}

// notWeir returns the error of an answer that is not one of the API.
func notWeir(err error) error {
	return fmt.Errorf("the answer does not come from a weir service: %w", err)
}

// held reports whether the take that d is about held something.
func (d *decision) held() bool {
	return slices.ContainsFunc(d.Limits, func(u usage) bool { return u.Held })
}

// done has the word that is printed for each verb about holds.
var done = map[string]string{"settle": "settled", "cancel": "cancelled", "renew": "renewed"}

func (d *decision) print(w io.Writer) {
	switch {
	case d.ended != "" && d.held():
		fmt.Fprintln(w, done[d.ended])
	case d.ended != "" && d.Unmatched:
		fmt.Fprintln(w, "nothing was held: no rule matches these attributes")
	case d.ended != "" && d.Degraded:
		fmt.Fprintln(w, "unknown whether anything is held")
	case d.ended != "":
		fmt.Fprintln(w, "nothing was held any more")
	case d.Unmatched && d.Allowed:
		fmt.Fprintln(w, "allowed, no rule matched")
	case d.Unmatched:
		fmt.Fprintf(w, "%s, no rule matched\n", verdict(d.Outcome))
	case d.Allowed && d.Rule == "":
		fmt.Fprintln(w, "allowed")
	case d.Allowed && d.Outcome == "allow":
		fmt.Fprintf(w, "allowed by %s\n", d.Rule)
	case d.Allowed:
		fmt.Fprintf(w, "allowed by %s: %s\n", d.Rule, d.Outcome)
	default:
		fmt.Fprintf(w, "%s by %s, %s\n", verdict(d.Outcome), d.Rule, d.wait())
	}
	if d.Replayed {
		fmt.Fprintln(w, "replayed: the first answer under this idempotency key; nothing was counted")
	}
	if d.Degraded {
		fmt.Fprintf(w, "degraded (%s): the store did not answer; the rules' on_outage decided\n", cmp.Or(d.Reason, "unknown"))
	}
	if len(d.Verdicts) > 1 {
		fmt.Fprintf(w, "verdicts: %s\n", strings.Join(d.Verdicts, ", "))
	}
	if len(d.Triggered) > 0 {
		fmt.Fprintf(w, "triggered: %s\n", strings.Join(d.Triggered, ", "))
	}
	if d.Receipt != "" {
		fmt.Fprintf(w, "receipt: %s\n", d.Receipt)
	}
	held := "held"
	if d.ended == "settle" || d.ended == "cancel" {
		held = done[d.ended]
	}
	printUsages(w, d.Limits, held)
}

func verdict(outcome string) string {
	if outcome == "deny" {
		return "denied"
	}
	return outcome
}

// wait returns the time until the next attempt, with the rule that requires it unless that is the
// one that denied.
func (d *decision) wait() string {
	text := "retry after " + d.RetryAfter.String()
	if d.RetryAfter <= 0 {
		text = "waiting will not help"
		i := slices.IndexFunc(d.Limits, func(u usage) bool { return u.Rule == d.RetryRule })
		if i >= 0 && d.Limits[i].Quota != nil && d.Limits[i].ResetAfter >= 0 { // what resets has room for whatever fits at all
			text += fmt.Sprintf(": the cost is above the limit of %d", *d.Limits[i].Quota)
		}
	}
	if d.RetryRule != d.Rule && d.RetryRule != "" {
		text += " (" + d.RetryRule + ")"
	}
	return text
}

// printUsages prints a table of list. held is the word for an amount that a take holds, or that
// it held until this call.
func printUsages(w io.Writer, list []usage, held string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "RULE\tKEY\tUSED\tQUOTA\tLEFT\tRESETS IN")
	for _, u := range list {
		name := u.Rule
		if u.Shadow {
			name += " (shadow)"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%v%s\n",
			name, u.Key, u.Used, number(u.Quota), number(u.Remaining), u.ResetAfter, u.more(held))
	}
}

// more returns the word held if the call is about a hold, whether a record was not
// counted, the end of a ban, and whether the quota is that of an override.
func (u *usage) more(held string) string {
	text := ""
	if u.Held {
		text = "  " + held
	}
	if u.Counted != nil && !*u.Counted {
		text += "  not counted"
	}
	if u.BannedUntil != nil {
		text += "  banned until " + u.BannedUntil.UTC().Format(time.RFC3339)
	}
	if u.Override {
		text += "  by an override"
	}
	return text
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func (u *usage) print(w io.Writer) {
	if u.Degraded {
		fmt.Fprintln(w, "degraded: the store did not answer; these are the counts of this instance only")
	}
	printUsages(w, []usage{*u}, "held")
	if u.Holds > 0 {
		fmt.Fprintf(w, "holds: %d\n", u.Holds)
	}
	if u.Strikes > 0 {
		fmt.Fprintf(w, "strikes: %d\n", u.Strikes)
	}
	if len(u.Series) == 0 {
		return
	}
	fmt.Fprintln(w, "\nFROM\tHITS")
	for _, cell := range u.Series {
		if cell.Hits > 0 {
			fmt.Fprintf(w, "%s\t%d\n", cell.Start.Format(time.RFC3339), cell.Hits)
		}
	}
}

func (e *explanation) print(w io.Writer) {
	e.Decision.print(w)
	fmt.Fprintln(w, "\nRULE\tMATCHES\tWHY")
	for _, r := range e.Rules {
		matches := "no"
		if r.Matched {
			matches = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Rule, matches, strings.Join(r.Reasons, "; "))
	}
}
