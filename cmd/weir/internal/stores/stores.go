// Package stores has the table of the shared stores that the service supports. Adding one needs the
// store's own package and a row of the table. [Local] is the store in the memory of this process, which
// every service has.
package stores

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// row is a kind of store that instances share.
type row struct {
	// Schemes are the schemes of the URLs that name such a store. No other row has
	// one of them.
	Schemes []string

	// Example is the beginning of such a URL, for help.
	Example string

	// Parse reads a URL with one of the schemes. The error is about store and
	// repeats no password.
	Parse func(url string) (Source, error)
}

// rows is the table of stores.
var rows = []row{
	{
		Schemes: []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix"},
		Example: "redis://…",
		Parse: func(url string) (Source, error) {
			cfg, err := redisstore.Parse(url)
			if err != nil {
				return Source{}, err
			}
			return Source{Location: cfg.String(), Servers: strings.Join(cfg.Addrs, ","), Open: func(ctx context.Context, o Options) (Shared, error) {
				cfg.Timeout, cfg.Changed = cmp.Or(o.Timeout, cfg.Timeout), o.Changed
				return cfg.Open(ctx)
			}}, nil
		},
	},
	{
		Schemes: []string{"postgres", "postgresql"},
		Example: "postgres://…",
		Parse: func(url string) (Source, error) {
			cfg, err := pgstore.Parse(url)
			if err != nil {
				return Source{}, err
			}
			return Source{Location: cfg.String(), Servers: cfg.Servers(), Open: func(ctx context.Context, o Options) (Shared, error) {
				cfg.Timeout, cfg.Changed = cmp.Or(o.Timeout, cfg.Timeout), o.Changed
				return cfg.Open(ctx)
			}}, nil
		},
	},
}

// Examples returns the beginnings of URLs of shared stores, for help.
func Examples() string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Example)
	}
	return strings.Join(all, ", ")
}

// Source is the location of a shared store, which is not open yet. It has no faults.
type Source struct {
	Location string // the URL, without secrets
	Servers  string // the addresses of the servers

	// Open opens the store. It returns when the store is ready, or unavailable, which is not
	// an error.
	Open func(context.Context, Options) (Shared, error)
}

// Options are what the service sets for every shared store.
type Options struct {
	Timeout time.Duration       // the time-out of a decision; 0: that of the URL, or the store's default
	Changed func(remote.Change) // is called when a node becomes unavailable or available, even before Open returns; or nil
}

// Shared is an open store that instances share.
type Shared interface {
	store.Store
	kept.Store

	// Secrets returns the secrets of receipts, which all instances have in common, the newest one first; see
	// [remote.Secrets.List].
	Secrets(again bool, own ...[16]byte) [][16]byte

	// Nodes returns the state of the servers in use. There are none until one was available.
	Nodes() []remote.Node

	// Diagnose checks whether the servers are suitable, for weir doctor and at the start. It
	// returns findings on the servers that were available.
	Diagnose(ctx context.Context) ([]remote.Finding, error)

	// Log adds entries to a log that instances share, and returns its newest ones; see
	// package redisstore.
	Log(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, skip, n int) ([]string, error)

	// Inspect returns a description of what the store has under the name of a key.
	Inspect(ctx context.Context, key string) (string, error)
}

// Parse reads the URL of a shared store. The error names every fault and repeats no
// password.
func Parse(url string) (Source, error) {
	scheme, _, ok := strings.Cut(url, "://")
	var schemes []string
	for _, r := range rows {
		if ok && slices.Contains(r.Schemes, scheme) {
			return r.Parse(url)
		}
		schemes = append(schemes, r.Schemes...)
	}
	// The error does not repeat the scheme, which may be a misplaced password.
	return Source{}, fault.List{fault.Newf("scheme", "want one of %s%s", strings.Join(schemes, ", "), fault.DidYouMean(scheme, schemes)).In("store")}.Err()
}
