package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/doctor"
	"github.com/weirhq/weir/window"
)

// Finding is the result of one check of a server; see [Store.Diagnose].
type Finding = doctor.Finding

// Diagnose checks whether the servers fit the store, and returns its findings on
// each primary. It counts nothing. It writes scratch keys under the store's prefix
// and deletes them. A check whose facts the user may not see has the level unknown.
// If some servers are out of reach, Diagnose returns an error and the findings on
// the others. It returns an error for a store of [New].
func (s *Store) Diagnose(ctx context.Context) ([]Finding, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if !s.owned {
		return nil, errors.New("weir: diagnose: the store is on a client of the caller; use redisstore.Open")
	}
	nodes, slots := s.servers.Primaries()
	if len(nodes) == 0 {
		return nil, s.failed(ctx, s.unreachable())
	}
	findings, errs := make([][]Finding, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { findings[i], errs[i] = s.examine(ctx, n.Addr(), slots[n]) })
	}
	all.Wait()
	return slices.Concat(findings...), errors.Join(errs...)
}

// unreachable returns why no node of a cluster can be reached.
func (s *Store) unreachable() error {
	var errs []error
	for _, n := range s.servers.Nodes() {
		if why := n.Trouble(); why != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Addr(), why))
		}
	}
	return cmp.Or(errors.Join(errs...), errors.New("no node of the cluster serves a slot"))
}

// examine checks the node that serves slot.
func (s *Store) examine(ctx context.Context, addr string, slot int) ([]Finding, error) {
	facts := doctor.Facts{Node: addr, Use: s.use(), Ran: map[string]string{}}
	_, err := s.servers.Client(ctx, slot, func(c rueidis.Client) (window.Instant, error) {
		e := examination{facts: &facts, client: c, slot: slot, cluster: s.servers.Sharded()}
		return 0, e.run(ctx)
	})
	if err != nil {
		return nil, s.failed(ctx, err) // the node names itself
	}
	return doctor.Check(&facts), nil
}

// use returns what the checks need of the configuration.
func (s *Store) use() doctor.Use {
	scheme, _, _ := strings.Cut(s.config.String(), "://")
	user := s.config.rest.Username
	if user == "" || s.config.rest.Password == "" {
		user = "default"
	}
	return doctor.Use{
		Scheme: scheme, User: user, Prefix: s.config.prefix, Timeout: s.config.Timeout,
		InFlight: s.config.rest.InFlight, WaitReplicas: s.config.rest.WaitReplicas,
	}
}
