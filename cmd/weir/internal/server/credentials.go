package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// credentials has the tokens and certificates of the authenticators of all listeners.
type credentials struct {
	cfg     config.Config
	keys    *access.Keys         // nil: callers need no token
	certs   *access.Certificates // nil: no listener has TLS
	numbers *metrics.Metrics
	log     *slog.Logger
	mu      sync.Mutex // held during a reload
}

// openCredentials reads the tokens and the certificates that cfg names.
func openCredentials(cfg config.Config, numbers *metrics.Metrics, log *slog.Logger) (*credentials, error) {
	d := &credentials{cfg: cfg, numbers: numbers, log: log}
	a := &cfg.Access
	var err error
	if a.NeedsToken() {
		var own []access.Own
		if a.Token != "" {
			own = append(own, access.Own{Name: "WEIR_TOKEN", Token: a.Token, Scopes: access.All})
		}
		if d.keys, err = access.OpenKeys(a.Tokens, own...); err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
		var line pacedLine // there is no end of addresses
		d.keys.Slow = func(address string) {
			line.warn(log, "wrong tokens: the address must wait", "address", address, "tokens", access.WrongTokens, "within", access.WrongWindow.String())
		}
	}
	if a.TLSCert != "" {
		if d.certs, err = access.OpenCertificates(a.TLSCert, a.TLSKey, a.TLSClientCA); err != nil {
			return nil, errors.Join(fmt.Errorf("tls: %w", err), d.close())
		}
		numbers.WatchCertificate(d.certs.Until)
	}
	if d.keys != nil {
		numbers.WatchTokens(d.keys.Len)
	}
	return d, nil
}

// close frees the memory of the tokens.
func (d *credentials) close() error {
	if d.keys == nil {
		return nil
	}
	return d.keys.Close()
}

// auth returns the authenticator of a listener, or nil if it admits everyone. reach states
// which holders it admits, by their namespaces.
func (d *credentials) auth(of config.Listener, reach access.Reach) *access.Authenticator {
	l := &access.Authenticator{Reach: reach, Refused: func(r access.Reason) { d.numbers.AccessRefused(of.Name, string(r)) }}
	switch {
	case d.cfg.Access.Open(of.Name):
		return nil
	case d.keys != nil:
		l.Keys = d.keys
	case of.Address.Scheme != "unix" && of.Address.Local():
		l.Hosts = access.NewHosts(d.cfg.Access.Hosts)
	default:
		return nil // the file of a socket, or certificates, authenticate
	}
	return l
}

// watch reads tokens and certificates again when their files change, until ctx
// is done.
func (d *credentials) watch(ctx context.Context) {
	var paths []string
	if d.cfg.Access.Tokens != "" {
		paths = append(paths, d.cfg.Access.Tokens)
	}
	if d.certs != nil {
		paths = append(paths, d.certs.Paths()...)
	}
	if len(paths) == 0 {
		return
	}
	watch(ctx, d.cfg.WatchEvery, &credentialFiles{d, paths}, d.log)
}

// reload reads tokens and certificates again. What has a fault stays as it is. asked says
// that somebody asked for it, so that the log has a fault that it has already.
func (d *credentials) reload(asked bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	reloaded := func(what string, changed bool, err error) {
		if err != nil {
			errs = append(errs, err)
		}
		switch {
		case err != nil && (changed || asked):
			d.numbers.AccessReloaded(what, false)
			d.log.Error(what+" refused; what was in force stays", "error", err)
		case err == nil && changed:
			d.numbers.AccessReloaded(what, true)
			d.log.Info(what + " loaded")
		}
	}
	if d.cfg.Access.Tokens != "" && d.keys != nil {
		changed, err := d.keys.Reload()
		reloaded("tokens", changed, err)
	}
	if d.certs != nil {
		changed, err := d.certs.Reload()
		reloaded("certificate", changed, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return &accessError{errs}
}

// accessError is the error of a reload that refused tokens or certificates.
type accessError struct{ errs []error }

func (e *accessError) Error() string   { return errors.Join(e.errs...).Error() }
func (e *accessError) Unwrap() []error { return e.errs }

// credentialFiles reloads credentials for watch.
type credentialFiles struct {
	*credentials
	paths []string
}

func (f *credentialFiles) files() []string { return f.paths }
func (f *credentialFiles) changed()        { _ = f.reload(false) } // the log has the error
