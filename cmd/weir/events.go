package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newEvents() *cobra.Command {
	var c client
	var kinds []string
	var rule, key, after string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print events as they happen",
		Long: `Print events as they happen, one CloudEvent in JSON a line, until it is interrupted. If
the connection breaks, the command connects again and continues after the last event.`,
		Example: "  weir events --kind denied,ban\n  weir events --rule posts-per-hour | jq .data.key",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			for name, value := range map[string]string{"kind": strings.Join(kinds, ","), "rule": rule, "key": key, "last_event_id": after} {
				if value != "" {
					q.Set(name, value)
				}
			}
			return c.follow(cmd.Context(), q, ofCallers(cmd.OutOrStdout()), cmd.ErrOrStderr())
		},
	}
	c.flags(cmd)
	_ = cmd.Flags().MarkHidden("json") // there is no other form
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only these `kinds`, such as near,denied,ban")
	cmd.Flags().StringVar(&rule, "rule", "", "only events of this `rule`")
	cmd.Flags().StringVar(&key, "of", "", "only events of this `key`")
	cmd.Flags().StringVar(&after, "after", "", "begin after the event with this `id`")
	return cmd
}

// followWait is the wait before a stream is opened again.
const followWait = 2 * time.Second

// follow prints the events of a stream, which it opens again when it ends. An error ends it before the stream was open, and
// is printed afterwards.
func (c *client) follow(ctx context.Context, q url.Values, out, errs io.Writer) error {
	last, said := q.Get("last_event_id"), ""
	for opened := false; ; {
		resp, err := c.send(ctx, http.MethodGet, "/v1/events?"+q.Encode(), nil)
		switch {
		case err == nil:
			opened, said = true, ""
			last, err = printEvents(resp.Body, last, out, errs)
			_ = resp.Body.Close()
			if lost := (*outputError)(nil); errors.As(err, &lost) {
				return lost.error
			}
		case !opened:
			return err
		case err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			fmt.Fprintln(errs, message(err))
		}
		if last != "" {
			q.Set("last_event_id", last)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followWait):
		}
	}
}

// outputError is an error of the output, after which there is nobody to print for.
type outputError struct{ error }

// printEvents prints the events of a stream until its end, and returns the id of the last one. An empty line ends an event:
// one that is cut before it comes again in the next stream.
func printEvents(in io.Reader, last string, out, errs io.Writer) (string, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	id, kind, data := last, "", ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return last, err
		}
		line = strings.TrimRight(line, "\r\n")
		switch name, value, _ := strings.Cut(line, ": "); {
		case name == "id":
			id = value
		case name == "event":
			kind = value
		case name == "data":
			data = value
		case line == "":
			if kind == "gap" {
				fmt.Fprintln(errs, "weir: events are missing here:", data)
			} else if data != "" {
				if _, err := fmt.Fprintln(out, data); err != nil {
					return last, &outputError{err}
				}
			}
			last, kind, data = id, "", ""
		}
	}
}
