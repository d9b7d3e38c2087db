package stores

import (
	"context"

	"github.com/weirhq/weir/store/pgstore"
)

// postgres is package pgstore.
var postgres = Row{
	Schemes: []string{"postgres", "postgresql"},
	Example: "postgres://…",
	Parse: func(url string) (Source, error) {
		cfg, err := pgstore.Parse(url)
		if err != nil {
			return Source{}, err
		}
		return Source{Location: cfg.String(), Servers: cfg.Servers(), Open: func(ctx context.Context, o Options) (*Shared, error) {
			return openPostgres(ctx, cfg, o)
		}}, nil
	},
}

func openPostgres(ctx context.Context, cfg pgstore.Config, o Options) (*Shared, error) {
	if o.Timeout > 0 {
		cfg.Timeout = o.Timeout
	}
	cfg.Changed = o.Changed
	s, err := cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Shared{Store: s, Location: cfg.String(), Nodes: s.Nodes, Diagnose: s.Diagnose, Log: s.Log, Kept: s, Inspect: s.Inspect}, nil
}
