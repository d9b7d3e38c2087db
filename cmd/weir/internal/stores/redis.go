package stores

import (
	"context"
	"strings"

	"github.com/weirhq/weir/store/redisstore"
)

// redis is package redisstore, on one server, Sentinels or a cluster.
var redis = Row{
	Schemes: []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix"},
	Example: "redis://…",
	Parse: func(url string) (Source, error) {
		cfg, err := redisstore.Parse(url)
		if err != nil {
			return Source{}, err
		}
		return Source{Location: cfg.String(), Servers: strings.Join(cfg.Addrs, ","), Open: func(ctx context.Context, o Options) (*Shared, error) {
			return openRedis(ctx, cfg, o)
		}}, nil
	},
}

func openRedis(ctx context.Context, cfg redisstore.Config, o Options) (*Shared, error) {
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
