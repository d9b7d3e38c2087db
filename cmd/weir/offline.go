package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/rulefile"
)

// ask answers a call by the rules file, as a service with empty counters does.
func (c *client) ask(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	name, err := c.rulesFile()
	if err != nil {
		return nil, err
	}
	file, err := rulefile.Load(name)
	if err != nil {
		return nil, err
	}
	engine, err := weir.NewEngine(file.Set)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	req, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	a := answerTo{header: http.Header{}, status: http.StatusOK}
	space := namespace.New(namespace.Default, engine, 0, nil)
	space.SetSource(namespace.Source{File: name, Loaded: time.Now()})
	httpapi.New(namespace.NewSet(space), httpapi.Config{}).ServeHTTP(&a, req)
	if a.status >= http.StatusBadRequest {
		return nil, problem(path, a.status, a.body.Bytes())
	}
	return a.body.Bytes(), nil
}

// rulesFile returns the path of the rules file to ask: that of the namespace, if
// --rules names a directory.
func (c *client) rulesFile() (string, error) {
	if info, err := os.Stat(c.rules); err != nil {
		return "", fmt.Errorf("rules file: %w", err)
	} else if !info.IsDir() {
		return c.rules, nil
	}
	path, err := namespace.In(c.rules, c.namespace)
	if err != nil {
		return "", &usageError{"--" + strings.TrimPrefix(err.Error(), "weir: ")}
	}
	return path, nil
}

// answerTo is an answer to a call within the program.
type answerTo struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answerTo) Header() http.Header         { return a.header }
func (a *answerTo) WriteHeader(status int)      { a.status = status }
func (a *answerTo) Write(p []byte) (int, error) { return a.body.Write(p) }

// completeRules completes the name of a rule with those of the service.
func (c *client) completeRules(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	answer, err := c.call(ctx, http.MethodGet, "/v1/rules", nil)
	var rules struct{ Rules []struct{ Name string } }
	if err != nil || json.Unmarshal(answer, &rules) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(rules.Rules))
	for i, r := range rules.Rules {
		names[i] = r.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
