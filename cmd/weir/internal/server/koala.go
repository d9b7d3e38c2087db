package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
)

// koalaFront serves koala's calls at an address of their own. A nil koalaFront
// serves none.
type koalaFront struct {
	*listener
	api *koalaapi.API
}

// openKoala returns nil when cfg asks for no such calls.
func openKoala(cfg config.Config, c *counts, rules *spaces, doors *doors, resources *resources, log *slog.Logger) (*koalaFront, error) {
	if cfg.KoalaAddr() == "" {
		return nil, nil
	}
	at, err := config.ParseAddress(cfg.KoalaAddr())
	if err != nil {
		return nil, err // unreachable after Validate
	}
	wait := context.Background()
	if c.shared != nil && c.shared.WithTimeout != nil {
		wait = c.shared.WithTimeout(wait, cfg.KoalaWait())
	}
	to := koalaapi.Config{Ping: c.ping, Context: wait, Auth: doors.auth("koala", at, access.ReachNamed), Resources: resources.requests("koala")}
	if cfg.Koala != "" {
		to.Rewrite, to.Rewriters = rules.rewrite, doors.rewriters()
	}
	api, err := koalaapi.New(rules.set, to)
	if err != nil {
		return nil, err
	}
	l, err := listen("koala-listen", at, doors.certs, resources.connections, resources.shedding("koala"), api, log)
	if err != nil {
		return nil, errors.Join(err, api.Close())
	}
	l.wrap(koalaapi.Listen)
	l.MaxHeaderBytes = koalaapi.MaxHead
	l.WriteTimeout = 10 * time.Second
	return &koalaFront{l, api}, nil
}

// Close closes the listener, and then frees the API.
func (k *koalaFront) Close() error { return errors.Join(k.listener.Close(), k.api.Close()) }

// url returns the address as a URL, or an empty string when k is nil.
func (k *koalaFront) url() string {
	if k == nil {
		return ""
	}
	return k.listener.url()
}
