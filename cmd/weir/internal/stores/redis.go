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
	if o.Changed != nil {
		cfg.Changed = func(c redisstore.Change) { o.Changed(Change(c)) }
	}
	s, err := cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Shared{
		Store: s, Location: cfg.String(), WithTimeout: redisstore.WithTimeout, Inspect: s.Inspect,
		Log: s.Log,
		Nodes: func() []Node {
			nodes := s.Nodes()
			all := make([]Node, len(nodes))
			for i, n := range nodes {
				all[i] = Node(n)
			}
			return all
		},
		Diagnose: func(ctx context.Context) ([]Finding, error) {
			findings, err := s.Diagnose(ctx)
			all := make([]Finding, len(findings))
			for i, f := range findings {
				all[i] = Finding{Check: f.Check, Level: Level(f.Level.String()), Node: f.Node, Seen: f.Seen, Means: f.Means, Fix: f.Fix}
			}
			return all, err
		},
	}, nil
}
