package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
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
	primaries, err := s.primaries(ctx)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	findings, errs := make([][]Finding, len(primaries)), make([]error, len(primaries))
	var nodes sync.WaitGroup
	for i, p := range primaries {
		nodes.Go(func() { findings[i], errs[i] = s.examine(ctx, p) })
	}
	nodes.Wait()
	return slices.Concat(findings...), errors.Join(errs...)
}

// examine checks one node.
func (s *Store) examine(ctx context.Context, p primary) ([]Finding, error) {
	facts := doctor.Facts{Node: p.addr, Use: s.use(), Ran: map[string]string{}}
	_, err := s.servers.Client(ctx, p.slot, func(c rueidis.Client) (window.Instant, error) {
		e := examination{facts: &facts, client: c, slot: p.slot, cluster: s.servers.Sharded()}
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
	user := s.config.username
	if user == "" || s.config.password == "" {
		user = "default"
	}
	return doctor.Use{
		Scheme: scheme, User: user, Prefix: s.config.prefix, Timeout: s.config.Timeout,
		InFlight: s.config.inFlight, WaitReplicas: s.config.waitReplicas,
	}
}

// primary is a node, and one of the slots that it serves.
type primary struct {
	addr string
	slot int
}

// primaries returns the nodes that serve slots, by address.
func (s *Store) primaries(ctx context.Context) (all []primary, err error) {
	if !s.servers.Sharded() {
		return []primary{{addr: s.servers.Nodes()[0].Addr()}}, nil
	}
	const slots, step = 16384, 1024
	for slot := 0; slot < slots; slot += step { // until a node answers
		_, err = s.servers.Client(ctx, slot, func(c rueidis.Client) (window.Instant, error) {
			ranges, err := c.Do(ctx, c.B().ClusterSlots().Build()).ToArray()
			all = owners(ranges)
			return 0, err
		})
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		err = s.trouble(err)
	}
	return all, err
}

// trouble returns why the nodes cannot be reached, or err when they can.
func (s *Store) trouble(err error) error {
	var errs []error
	for _, n := range s.servers.Nodes() {
		if why := n.Trouble(); why != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Addr(), why))
		}
	}
	return cmp.Or(errors.Join(errs...), err)
}

// owners reads a reply of CLUSTER SLOTS.
func owners(ranges []rueidis.RedisMessage) []primary {
	bySlot := map[string]int{}
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			continue
		}
		owner, _ := parts[2].ToArray()
		if slot, err := parts[0].AsInt64(); err == nil && len(owner) > 1 {
			host, _ := owner[0].ToString()
			port, _ := owner[1].AsInt64()
			bySlot[net.JoinHostPort(host, strconv.FormatInt(port, 10))] = int(slot)
		}
	}
	all := make([]primary, 0, len(bySlot))
	for addr, slot := range bySlot {
		all = append(all, primary{addr, slot})
	}
	slices.SortFunc(all, func(a, b primary) int { return strings.Compare(a.addr, b.addr) })
	return all
}
