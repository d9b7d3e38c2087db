package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/doctor"
)

// Finding is the result of one check of a server; see [Store.Diagnose].
type Finding = doctor.Finding

// Diagnose checks whether the servers fit the store, and returns its findings on
// each primary. It counts nothing. It writes scratch keys under the store's prefix
// and deletes them. A check whose facts the user may not see has the level unknown.
// If some servers are unavailable, Diagnose returns an error and the findings on
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
		all.Go(func() { findings[i], errs[i] = s.examine(ctx, n.Addr, slots[n]) })
	}
	all.Wait()
	return slices.Concat(findings...), errors.Join(errs...)
}

// unreachable returns why no node of a cluster can be reached.
func (s *Store) unreachable() error {
	var errs []error
	for _, n := range s.servers.Nodes() {
		if why := n.Trouble(); why != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Addr, why))
		}
	}
	return cmp.Or(errors.Join(errs...), errors.New("no node of the cluster serves a slot"))
}

// examine checks the node that serves slot.
func (s *Store) examine(ctx context.Context, addr string, slot int) ([]Finding, error) {
	facts := doctor.Facts{Node: addr, Use: s.use(), Ran: map[string]string{}}
	err := s.servers.Client(ctx, slot, func(c rueidis.Client) error {
		e := examination{facts: &facts, client: c, slot: slot, cluster: s.servers.Sharded()}
		return e.run(ctx)
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
		Scheme: scheme, User: user, Prefix: s.config.prefix, Timeout: s.config.Timeout, WaitReplicas: s.config.rest.WaitReplicas,
	}
}

// examination fills facts with what one node answers.
type examination struct {
	facts   *doctor.Facts
	client  rueidis.Client
	slot    int
	cluster bool
}

// run asks the node. Errors of the server are facts; the error is that of a node
// without an answer.
func (e *examination) run(ctx context.Context) error {
	for _, ask := range []func(context.Context) error{e.ask, e.programs, e.race, e.time} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	return nil
}

// do sends commands together and calls each for their replies. An error of the
// server is passed to each as text.
func (e *examination) do(ctx context.Context, commands [][]string, each func(i int, m rueidis.RedisMessage, problem string)) error {
	built := make([]rueidis.Completed, len(commands))
	for i, c := range commands {
		built[i] = e.client.B().Arbitrary(c...).Build()
	}
	for i, r := range e.client.DoMulti(ctx, built...) {
		m, err := r.ToMessage()
		if said, ok := rueidis.IsRedisErr(err); ok {
			each(i, m, said.Error())
		} else if err == nil || rueidis.IsRedisNil(err) {
			each(i, m, "")
		} else {
			return err
		}
	}
	return nil
}

// keysSeen is how many keys the look for foreign keys goes over.
const keysSeen = 1000

// ask asks what the node is, how it is set up, and which keys it has.
func (e *examination) ask(ctx context.Context) error {
	f := e.facts
	commands := [][]string{
		{"INFO"}, {"HELLO"}, {"ACL", "WHOAMI"},
		{"SCAN", "0", "MATCH", globbed(f.Use.Prefix) + ":*", "COUNT", strconv.Itoa(keysSeen)},
	}
	for _, name := range doctor.Settings {
		commands = append(commands, []string{"CONFIG", "GET", name})
	}
	var config strings.Builder
	err := e.do(ctx, commands, func(i int, m rueidis.RedisMessage, problem string) {
		if problem != "" {
			return // the text stays empty
		}
		switch i {
		case 0:
			f.Info, _ = m.ToString()
		case 1:
			f.Hello = lines(m, ":")
		case 2:
			f.User, _ = m.ToString()
		case 3:
			if page, err := m.AsScanEntry(); err == nil {
				f.Keys, f.KeysSeen = page.Elements, true
			}
		default:
			config.WriteString(lines(m, " "))
		}
	})
	f.Config = config.String()
	return err
}

// lines returns the texts of a map, a line each, by name.
func lines(m rueidis.RedisMessage, separator string) string {
	fields, _ := m.AsStrMap() // none of an answer of another form
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b.WriteString(name + separator + fields[name] + "\n")
	}
	return b.String()
}

// globbed returns text as a pattern that matches only text.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// programs runs the commands that the store's programs need.
func (e *examination) programs(ctx context.Context) error {
	f := e.facts
	key := e.scratch()
	commands := [][]string{
		{"EVAL", doctor.Probe, "3", key, key + ":z", key + ":u"},
		{"EVALSHA", strings.Repeat("0", 40), "1", key},
		{"PING"},
	}
	if e.cluster {
		commands = append(commands, []string{"CLUSTER", "SLOTS"}, []string{"ASKING"})
	}
	if f.Use.WaitReplicas > 0 {
		commands = append(commands, []string{"WAIT", "0", "1"})
	}
	return e.do(ctx, commands, func(i int, m rueidis.RedisMessage, problem string) {
		name := commands[i][0]
		if name == "CLUSTER" {
			name = "CLUSTER SLOTS"
		}
		f.Ran[name] = problem
		if i > 0 || problem != "" {
			return
		}
		ran, err := m.AsStrSlice()
		if err != nil || len(ran)%2 != 0 {
			f.Ran[name] = "an answer that is no list of texts"
			return
		}
		for pair := range slices.Chunk(ran, 2) {
			f.Ran[pair[0]] = pair[1]
		}
	})
}

// scratch returns a new name of a key in the node's slot, with the form of the
// store's own.
func (e *examination) scratch() string {
	random := fmt.Sprintf("%016x", rand.Uint64())
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s:{doctor-%d}:doctor:%s", e.facts.Use.Prefix, i, random)
		if !e.cluster || conn.SlotOf([]byte(key)) == e.slot {
			return key
		}
	}
}

// race runs a program that counts over two connections at the same time, and
// reads what was counted.
func (e *examination) race(ctx context.Context) error {
	const each = 10
	if e.facts.Ran["EVAL"] != "" || e.facts.Ran["GET"] != "" || e.facts.Ran["SET"] != "" {
		return nil
	}
	key := e.scratch()
	var errs [2]error
	var refused [2]bool
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() {
			errs[i] = e.client.Dedicated(func(c rueidis.DedicatedClient) error {
				// A connection that is kept for others ends subscriptions first, which needs rights.
				defer c.Close()
				for range each {
					err := c.Do(ctx, c.B().Arbitrary("EVAL", doctor.Race, "1", key).Build()).Error()
					if _, refused[i] = rueidis.IsRedisErr(err); refused[i] {
						return nil
					} else if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	both.Wait()
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return err
	}
	return e.do(ctx, [][]string{{"GET", key}, {"UNLINK", key}}, func(i int, m rueidis.RedisMessage, problem string) {
		if i == 0 && problem == "" && !refused[0] && !refused[1] {
			n, _ := m.AsInt64()
			e.facts.Raced, e.facts.Counted = 2*each, int(n)
		}
	})
}

// time measures the round trip, and how far the clocks are apart.
func (e *examination) time(ctx context.Context) error {
	var trips []time.Duration
	for range 9 {
		before := time.Now()
		at, err := e.client.Do(ctx, e.client.B().Time().Build()).AsIntSlice()
		trip := time.Since(before)
		if _, refused := rueidis.IsRedisErr(err); refused || err == nil && len(at) != 2 {
			return nil
		} else if err != nil {
			return err
		}
		if len(trips) == 0 || trip < slices.Min(trips) {
			e.facts.Ahead = time.Unix(at[0], at[1]*1000).Sub(before.Add(trip / 2))
		}
		trips = append(trips, trip)
	}
	slices.Sort(trips)
	e.facts.RoundTrip = trips[len(trips)/2]
	return nil
}
