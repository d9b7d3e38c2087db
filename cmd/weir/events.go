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
			for name, value := range map[string]string{"kind": strings.Join(kinds, ","), "rule": rule, "key": key} {
				if value != "" {
					q.Set(name, value)
				}
			}
			return c.follow(cmd.Context(), "/v1/events?"+q.Encode(), after, cmd.OutOrStdout(), cmd.ErrOrStderr())
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

// follow prints the events of a stream, which it opens again when it ends.
func (c *client) follow(ctx context.Context, path, after string, out, errs io.Writer) error {
	for opened := false; ; {
		resp, via, err := c.send(ctx, http.MethodGet, path, http.NoBody, after)
		switch {
		case err != nil && !opened:
			return err
		case err == nil && resp.StatusCode >= http.StatusMultipleChoices && (!opened || resp.StatusCode < http.StatusInternalServerError):
			defer resp.Body.Close()
			text, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
			return problem(resp.Request.URL.String(), resp.StatusCode, text)
		case err == nil && resp.StatusCode == http.StatusOK:
			opened = true
			after, err = printEvents(resp.Body, after, out, errs)
		}
		if resp != nil {
			_ = resp.Body.Close()
			via.CloseIdleConnections()
		}
		if lost := (*outputError)(nil); errors.As(err, &lost) {
			return lost.error
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

// printEvents prints the events of a stream until its end, and returns the id of the last one.
func printEvents(in io.Reader, last string, out, errs io.Writer) (string, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	kind := ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return last, err
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch name {
		case "id":
			last = value
		case "event":
			kind = value
		case "data":
			if kind == "gap" {
				fmt.Fprintln(errs, "weir: events are missing here:", value)
			} else if _, err := fmt.Fprintln(out, value); err != nil {
				return last, &outputError{err}
			}
		}
	}
}
