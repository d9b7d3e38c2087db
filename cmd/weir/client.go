package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/printable"
)

// client calls a running service.
type client struct {
	addr          string
	json          bool   // print answers unchanged
	rules         string // a rules file, or a directory, to ask instead of a service
	namespace     string // empty: the token's, or the default one
	ca, cert, key string
}

// flags adds the flags of the commands that call a service, and turns the
// completion of file names off.
func (c *client) flags(cmd *cobra.Command) {
	addr := cmp.Or(os.Getenv("WEIR_ADDR"), "http://127.0.0.1:8080")
	cmd.Flags().StringVar(&c.addr, "addr", addr, "`URL` of the service, or unix:PATH; WEIR_ADDR sets the default, WEIR_TOKEN the token")
	cmd.Flags().StringVar(&c.ca, "ca", os.Getenv("WEIR_CA"), "`file` with the authority of the service's certificate; WEIR_CA sets the default")
	cmd.Flags().StringVar(&c.cert, "cert", "", "`file` with a certificate to show to the service")
	cmd.Flags().StringVar(&c.key, "key", "", "`file` with the key of --cert")
	cmd.Flags().StringVar(&c.namespace, "namespace", os.Getenv("WEIR_NAMESPACE"), "`namespace` to ask; WEIR_NAMESPACE sets the default (neither: that of the token, or default)")
	cmd.Flags().BoolVar(&c.json, "json", false, "print the service's answer as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions // attributes are not files
}

// offline adds the flag that asks a rules file instead of a service.
func (c *client) offline(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.rules, "rules", "", "ask this rules `file`, or that of the namespace in a directory, with empty counters, instead of a service")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if c.rules != "" && cmd.Flags().Changed("addr") {
			return &usageError{"--rules and --addr exclude each other: either a file answers, or a service"}
		}
		return nil
	}
}

// patience is the longest wait for an answer.
const patience = 10 * time.Second

// mostAnswer is the maximum size of an answer, in bytes.
const mostAnswer = 64 << 20

// call sends body, if any, as JSON and returns the answer. A problem that the
// service reports is an error.
func (c *client) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	if c.rules != "" {
		payload, err := encoded(body)
		if err != nil {
			return nil, err
		}
		return c.offlineAnswer(ctx, method, path, payload)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp.Body)
}

// encoded returns body, if any, as JSON.
func encoded(body any) (*bytes.Buffer, error) {
	payload := new(bytes.Buffer)
	if body == nil {
		return payload, nil
	}
	return payload, json.NewEncoder(payload).Encode(body)
}

// readAnswer reads an answer, up to its maximum size.
func readAnswer(r io.Reader) ([]byte, error) {
	answer, err := io.ReadAll(io.LimitReader(r, mostAnswer+1))
	if err == nil && len(answer) > mostAnswer {
		err = notWeir(fmt.Errorf("it has more than %d MiB", mostAnswer>>20))
	}
	return answer, err
}

// answerTypes are the types of the service's answers: others are from another server, such as the page on which one signs in to
// a proxy.
var answerTypes = []string{"application/json", "application/x-ndjson", "text/csv", "text/event-stream"}

// send sends body, if any, as JSON to the service, and returns the response, whose body the
// caller closes. A problem that the service reports is an error.
func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	payload, err := encoded(body)
	if err != nil {
		return nil, err
	}
	base, via, err := c.transport()
	if err != nil {
		return nil, err
	}
	via.DisableKeepAlives = true // the connection closes with the response
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.namespace != "" {
		if err := access.CheckName(c.namespace); err != nil {
			return nil, &usageError{"--namespace: " + err.Error()}
		}
		req.Header.Set(namespace.Header, c.namespace)
	}
	if token := os.Getenv("WEIR_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// A redirect would send the token elsewhere.
	to := http.Client{Transport: via, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := to.Do(req)
	if err != nil {
		var cert *tls.CertificateVerificationError
		if errors.As(err, &cert) {
			return nil, fmt.Errorf("%w (the name in --addr must be in the service's certificate; --ca names its authority)", err)
		}
		return nil, fmt.Errorf("%w (is `weir serve` running there? see --addr)", err)
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode < http.StatusMultipleChoices && slices.Contains(answerTypes, kind):
		return resp, nil
	case resp.StatusCode < http.StatusMultipleChoices:
		_ = resp.Body.Close()
		return nil, notWeir(fmt.Errorf("%s answers %d with a body of type %.40q", resp.Request.URL.Redacted(), resp.StatusCode, kind))
	}
	defer resp.Body.Close()
	answer, err := readAnswer(resp.Body)
	if err != nil {
		return nil, err
	}
	return nil, problem(resp.Request.URL.Redacted(), resp.StatusCode, answer)
}

// transport returns the start of the service's URLs, and the way to send requests
// there.
func (c *client) transport() (base string, via *http.Transport, err error) {
	via = http.DefaultTransport.(*http.Transport).Clone()
	if path, ok := strings.CutPrefix(c.addr, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		via.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return "http://localhost", via, nil
	}
	if base = c.addr; !strings.Contains(base, "://") {
		base = "http://" + base
	}
	via.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return "", nil, err
		}
		via.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !via.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return "", nil, fmt.Errorf("%s: holds no certificate in PEM", c.ca)
		}
	}
	if c.cert != "" || c.key != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return "", nil, fmt.Errorf("--cert and --key: %w", err)
		}
		via.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return base, via, nil
}

// plainToTLS is the beginning of net/http's answer to a request without TLS at a listener with
// TLS.
const plainToTLS = "Client sent an HTTP request to an HTTPS server"

// problem returns the error that a service reports in an answer.
func problem(url string, status int, answer []byte) error {
	var p struct{ Detail string }
	switch err := json.Unmarshal(answer, &p); {
	case status == http.StatusUnauthorized && os.Getenv("WEIR_TOKEN") == "":
		return errors.New("the call needs a token: set WEIR_TOKEN")
	case status == http.StatusBadRequest && bytes.HasPrefix(answer, []byte(plainToTLS)):
		return fmt.Errorf("%s: the service speaks TLS: write https://", url)
	case err != nil || p.Detail == "":
		return fmt.Errorf("%s answered %d %s", url, status, http.StatusText(status))
	}
	return errors.New(printable.Text(p.Detail))
}

// attributes parses arguments such as user=42.
func attributes(args []string) (map[string]string, error) {
	attrs := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, &usageError{fmt.Sprintf("invalid attribute %q: want NAME=VALUE, such as user=42", arg)}
		}
		if !utf8.ValidString(arg) {
			return nil, &usageError{fmt.Sprintf("attribute %q is not valid UTF-8", arg)}
		}
		if _, twice := attrs[name]; twice {
			return nil, &usageError{fmt.Sprintf("attribute %s is given twice", name)}
		}
		attrs[name] = value
	}
	return attrs, nil
}

// keyQuery returns the URL query for one key of a rule, or of all rules if rule is empty.
// reserved are the names of other parameters.
func keyQuery(rule string, args []string, reserved ...string) (url.Values, error) {
	attrs, err := attributes(args)
	if err != nil {
		return nil, err
	}
	if _, ok := attrs["rule"]; ok {
		return nil, &usageError{"attribute rule: the name is reserved here for the rule itself"}
	}
	q := url.Values{}
	if rule != "" {
		q.Set("rule", rule)
	}
	for name, value := range attrs {
		if slices.Contains(reserved, name) {
			return nil, &usageError{"attribute " + name + ": the name is reserved here"}
		}
		q.Set(name, value)
	}
	return q, nil
}

// offlineAnswer answers a call by the rules file, as a service with empty counters does.
func (c *client) offlineAnswer(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	name, err := c.rulesFile()
	if err != nil {
		return nil, err
	}
	file, err := loadRules(name)
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
