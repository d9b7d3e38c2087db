package events

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/fault"
)

const (
	maxWebhooksFile = 1 << 20
	maxWebhooks     = 16
	defaultTimeout  = 10 * time.Second
	maxTimeout      = time.Minute
	maxSecretFile   = 4 << 10
)

// Webhook is a receiver of events.
type Webhook struct {
	Name       string
	URL        *url.URL
	SecretFile string
	Kinds      []Kind   // nil: all
	Namespaces []string // nil: all, and the events of the whole service
	Rules      []string // nil: all, and the events without a rule
	Timeout    time.Duration
	Proxy      *url.URL // nil: none
}

// wants reports whether w is sent events of a kind.
func (w *Webhook) wants(kind Kind) bool { return len(w.Kinds) == 0 || slices.Contains(w.Kinds, kind) }

// Webhooks reads the file with webhooks. The error has every fault, with its place.
func Webhooks(path string) ([]Webhook, error) {
	src, err := files.Read(path, maxWebhooksFile)
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	return ParseWebhooks(path, src)
}

// IsWebhooks reports whether text is that of a file with webhooks, and not one with rules.
func IsWebhooks(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("webhooks:")) {
			return true
		}
	}
	return false
}

// ParseWebhooks reads the text of a file with webhooks, and the files with their secrets, whose names are relative to path.
func ParseWebhooks(path string, src []byte) ([]Webhook, error) {
	r := &reader{file: path, src: src}
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			r.faultAt(e.GetToken().Position.Line, e.GetToken().Position.Column, "", "%s", e.GetMessage())
		} else {
			r.faultAt(1, 1, "", "%v", err)
		}
		return nil, r.faults.Err()
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		r.faultAt(1, 1, "", "empty: want the field webhooks with a list")
		return nil, r.faults.Err()
	}
	var hooks []Webhook
	fields := r.fields(tree.Docs[0].Body, "", "webhooks")
	list, ok := fields["webhooks"].(*ast.SequenceNode)
	if !ok {
		if len(r.faults) == 0 {
			r.fault(tree.Docs[0].Body, "webhooks", "want a list of webhooks")
		}
		return nil, r.faults.Err()
	}
	if len(list.Values) > maxWebhooks {
		r.fault(list, "webhooks", "%d: want at most %d", len(list.Values), maxWebhooks)
	}
	for n, node := range list.Values {
		w := r.webhook(node, fmt.Sprintf("webhooks[%d]", n))
		if slices.ContainsFunc(hooks, func(o Webhook) bool { return o.Name == w.Name }) {
			r.fault(node, fmt.Sprintf("webhooks[%d].name", n), "%q: is the name of another webhook", w.Name)
		}
		hooks = append(hooks, w)
	}
	if err := r.faults.Err(); err != nil {
		return nil, err
	}
	return hooks, nil
}

// reader collects the faults of a file.
type reader struct {
	file   string
	src    []byte
	faults fault.List
}

func (r *reader) faultAt(line, column int, path, format string, args ...any) {
	f := fault.Newf(path, format, args...)
	f.Place = fault.Place{File: r.file, Line: line, Column: column}
	if lines := strings.Split(string(r.src), "\n"); line <= len(lines) && !strings.Contains(lines[line-1], "://") { // a URL can have a password
		f.Place.Source = lines[line-1]
	}
	r.faults = append(r.faults, f)
}

func (r *reader) fault(n ast.Node, path, format string, args ...any) {
	at := n.GetToken().Position
	r.faultAt(at.Line, at.Column, path, format, args...)
}

// fields returns the values of the fields of a mapping, which may have those called known.
func (r *reader) fields(n ast.Node, path string, known ...string) map[string]ast.Node {
	all := map[string]ast.Node{}
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		r.fault(n, path, "want fields: %s", strings.Join(known, ", "))
		return all
	}
	for _, v := range values {
		name := v.Key.GetToken().Value
		if !slices.Contains(known, name) {
			r.fault(v.Key, path, "%q: unknown field; want %s", name, strings.Join(known, ", "))
			continue
		}
		all[name] = v.Value
	}
	return all
}

// text returns the text of a scalar, and reports whether there is one.
func (r *reader) text(n ast.Node, path string) (string, bool) {
	if n == nil {
		return "", false
	}
	s, ok := n.(ast.ScalarNode)
	if !ok || n.Type() == ast.NullType {
		r.fault(n, path, "want a text")
		return "", false
	}
	return fmt.Sprint(s.GetValue()), true
}

// texts returns the texts of a list.
func (r *reader) texts(n ast.Node, path string) (all []string) {
	if n == nil {
		return nil
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.fault(n, path, "want a list, such as [a, b]")
		return nil
	}
	for _, v := range list.Values {
		if text, ok := r.text(v, path); ok {
			all = append(all, text)
		}
	}
	return all
}

func (r *reader) webhook(n ast.Node, path string) (w Webhook) {
	f := r.fields(n, path, "name", "url", "secret_file", "events", "namespaces", "rules", "timeout", "proxy")
	field := func(name string) string { return path + "." + name }
	name, ok := r.text(f["name"], field("name"))
	if w.Name = name; !ok || !validName(name) {
		r.fault(cmp.Or(f["name"], n), field("name"), "%q: want up to 64 letters, digits, '.', '_' and '-'", name)
	}
	text, ok := r.text(f["url"], field("url"))
	w.URL, ok = parseURL(text, ok)
	if !ok {
		r.fault(cmp.Or(f["url"], n), field("url"), "want a URL such as https://example.com/hooks") // its text can have a password
	}
	if text, ok = r.text(f["secret_file"], field("secret_file")); !ok || text == "" {
		r.fault(cmp.Or(f["secret_file"], n), field("secret_file"), "missing: want the name of a file with the secret of signatures")
	} else {
		w.SecretFile = files.RelativeTo(r.file, text)
		if _, err := (&secrets{path: w.SecretFile}).read(); err != nil {
			r.fault(f["secret_file"], field("secret_file"), "%v", err)
		}
	}
	for _, k := range r.texts(f["events"], field("events")) {
		if !slices.Contains(Kinds(), Kind(k)) {
			r.fault(f["events"], field("events"), "%q: want some of %s", k, Names())
		}
		w.Kinds = append(w.Kinds, Kind(k))
	}
	w.Namespaces, w.Rules = r.texts(f["namespaces"], field("namespaces")), r.texts(f["rules"], field("rules"))
	if text, ok = r.text(f["timeout"], field("timeout")); ok {
		var err error
		if w.Timeout, err = time.ParseDuration(text); err != nil || w.Timeout < 100*time.Millisecond || w.Timeout > maxTimeout {
			r.fault(f["timeout"], field("timeout"), "%q: want a duration from 100ms to %v", text, maxTimeout)
		}
	}
	if text, ok = r.text(f["proxy"], field("proxy")); ok {
		if w.Proxy, ok = parseURL(text, true); !ok {
			r.fault(f["proxy"], field("proxy"), "want a URL such as http://proxy.internal:3128")
		}
	}
	return w
}

func parseURL(text string, given bool) (*url.URL, bool) {
	u, err := url.Parse(text)
	return u, given && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Fragment == ""
}

func validName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// secrets are those of a file, one a line. The first one is the newest; further ones are for receivers that
// still have an older one.
type secrets struct {
	path string
	keys [][]byte
	err  error // of the last reading
	at   time.Time
}

// read returns the secrets, which it reads again after a second. If that fails, it returns the last ones, if there are
// any, and the error.
func (s *secrets) read() ([][]byte, error) {
	if s.keys != nil && time.Since(s.at) < time.Second {
		return s.keys, s.err
	}
	s.at = time.Now()
	text, err := files.Read(s.path, maxSecretFile)
	if err == nil {
		var keys [][]byte
		if keys, err = parseSecrets(text); err == nil {
			s.keys = keys
		} else {
			err = fmt.Errorf("%s: %w", s.path, err)
		}
	}
	s.err = err
	return s.keys, err
}

// parseSecrets reads the text of a file with secrets. Errors do not repeat them.
func parseSecrets(text []byte) (keys [][]byte, err error) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(line), "whsec_"))
		if err != nil || len(key) < 24 || len(key) > 64 {
			return nil, errors.New("want whsec_ and the base64 of 24 to 64 random bytes in a line, such as: echo whsec_$(openssl rand -base64 32)")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > 2 {
		return nil, fmt.Errorf("%d secrets: want one, or two while the first replaces the second", len(keys))
	}
	return keys, nil
}
