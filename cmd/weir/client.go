package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// client asks a running service.
type client struct {
	addr string
	json bool // print answers as they come
}

// flags are those of every command that asks, and how the shell completes its
// arguments.
func (c *client) flags(cmd *cobra.Command) {
	addr := os.Getenv("WEIR_ADDR")
	if addr == "" {
		addr = "http://127.0.0.1:8080"
	}
	cmd.Flags().StringVar(&c.addr, "addr", addr, "`URL` of the service; WEIR_ADDR sets the default")
	cmd.Flags().BoolVar(&c.json, "json", false, "print the service's answer as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions // attributes are not files
}

// patience is how long an answer may take.
const patience = 10 * time.Second

// call sends body, if any, as JSON and reads the answer. Problems come back as
// errors.
func (c *client) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return nil, err
		}
	}
	base := c.addr
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, &payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w (is `weir serve` running there? see --addr)", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, problem(resp, answer)
	}
	return answer, nil
}

// problem is what a service answered in place of an answer.
func problem(resp *http.Response, answer []byte) error {
	var p struct{ Detail string }
	if err := json.Unmarshal(answer, &p); err != nil || p.Detail == "" {
		return fmt.Errorf("%s answered %s", resp.Request.URL, resp.Status)
	}
	return errors.New(p.Detail)
}

// attributes reads arguments such as user=42.
func attributes(args []string) (map[string]string, error) {
	attrs := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, &usageError{fmt.Sprintf("%q is not an attribute, such as user=42", arg)}
		}
		if _, twice := attrs[name]; twice {
			return nil, &usageError{fmt.Sprintf("attribute %s is there twice", name)}
		}
		attrs[name] = value
	}
	return attrs, nil
}

// keyQuery is the query that names one key of a rule.
func keyQuery(rule string, args []string) (string, error) {
	attrs, err := attributes(args)
	if err != nil {
		return "", err
	}
	if _, ok := attrs["rule"]; ok {
		return "", &usageError{"an attribute called rule cannot be asked for here"}
	}
	q := url.Values{"rule": {rule}}
	for name, value := range attrs {
		q.Set(name, value)
	}
	return "?" + q.Encode(), nil
}
