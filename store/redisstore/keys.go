package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

const (
	// scanCount is about how many names a server looks at for one page, and atOnce how
	// many keys it reads in one round trip, or fewer with [manyMembers] or manyWords in all: a server does nothing else
	// meanwhile.
	scanCount = 512
	atOnce    = 64
	manyWords = 1 << 18

	pageTimeout = 5 * time.Second
)

// Keys calls found for some of the keys in the space of op, with their states under its limit at one instant each. It
// begins behind the position after, nil at first, and returns the position to go on from, nil at the end. It scans
// the primaries one after the other, and returns [store.ErrMoved] if the cluster has changed since the first, or
// another server has taken the place of one: keys could be missing, or be found on two nodes. Keys that are there all
// the time are found, and some can be found more than once. key is nil for a key whose name in Redis does not have
// all of it, because a part has more than 64 bytes. found must not keep its arguments.
func (s *Store) Keys(ctx context.Context, op *store.Op, after []byte, found func(key []byte, state window.State, now window.Instant)) (next []byte, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	nodes, slots := s.servers.Primaries()
	if len(nodes) == 0 {
		return nil, s.failed(ctx, s.unreachable())
	}
	at, cursor, place := 0, uint64(0), []string(nil)
	if after != nil {
		place = strings.SplitN(string(after), " ", 4)
		if len(place) < 4 {
			return nil, store.ErrMoved
		}
		at = slices.IndexFunc(nodes, func(n *conn.Node) bool { return n.Addr == place[3] })
		if cursor, err = strconv.ParseUint(place[0], 10, 64); err != nil || at < 0 {
			return nil, store.ErrMoved
		}
	}
	within, cancel := s.Within(remote.WithTimeout(ctx, pageTimeout))
	defer cancel()
	layout, process, err := s.servers.Layout(within, slots[nodes[at]])
	switch {
	case err != nil:
		return nil, s.failed(ctx, err)
	case after != nil && layout != place[1], cursor != 0 && process != place[2]: // a cursor is of one process
		return nil, store.ErrMoved
	}
	var names []string
	err = s.servers.Client(within, slots[nodes[at]], func(c rueidis.Client) error {
		page, err := c.Do(within, c.B().Scan().Cursor(cursor).Match(s.codec.Names().Pattern(op.Space)).Count(scanCount).Build()).AsScanEntry()
		names, cursor = page.Elements, page.Cursor
		return err
	})
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	keys := make([][]byte, 0, len(names))
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		key, ok := s.codec.Names().Key(op.Space, name)
		if ok {
			keys = append(keys, key)
		}
		return !ok
	})
	for len(names) > 0 {
		n, members, err := s.nextKeys(ctx, slots[nodes[at]], op.Limit, names)
		if err == nil {
			err = s.readKeys(ctx, slots[nodes[at]], op, members, names[:n], keys[:n], found)
		}
		if errors.Is(err, store.ErrMoved) {
			return nil, err
		} else if err != nil {
			return nil, s.failed(ctx, err)
		}
		names, keys = names[n:], keys[n:]
	}
	// A node knows of its own slots first, so each is asked after it was scanned, too.
	within, cancel = s.Within(remote.WithTimeout(ctx, pageTimeout))
	defer cancel()
	layoutNow, processNow, err := s.servers.Layout(within, slots[nodes[at]])
	switch {
	case err != nil:
		return nil, s.failed(ctx, err)
	case layoutNow != layout, processNow != process:
		return nil, store.ErrMoved
	}
	if cursor == 0 {
		if at++; at == len(nodes) {
			return nil, nil
		}
	}
	return []byte(strings.Join([]string{strconv.FormatUint(cursor, 10), layout, process, nodes[at].Addr}, " ")), nil
}

// nextKeys returns how many of names, of one node, are read in one round trip, and how many members are listed then.
func (s *Store) nextKeys(ctx context.Context, slot int, limit *window.Compiled, names []string) (n, members int, err error) {
	if !lists(limit) {
		return min(len(names), atOnce, max(manyWords/limit.MaxWords(), 1)), 0, nil
	}
	names = names[:min(len(names), atOnce)]
	err = s.ask(remote.WithTimeout(ctx, pageTimeout), slot, func(ctx context.Context, c rueidis.Client) error {
		all := make([]rueidis.Completed, len(names))
		for i, name := range names {
			all[i] = c.B().Zcard().Key(keyname.StateAndMembers(name)[1]).Build()
		}
		for _, reply := range c.DoMulti(ctx, all...) {
			of, err := reply.AsInt64()
			if err != nil && conn.ReasonOf(err) == remote.Moving {
				return store.ErrMoved
			}
			if err != nil || n > 0 && members+int(of) > manyMembers {
				return err
			}
			n, members = n+1, members+int(of)
		}
		return nil
	})
	return n, members, err
}

// readKeys calls found for keys of one node in the space of op. That lists so many members.
func (s *Store) readKeys(
	ctx context.Context, slot int, op *store.Op, members int, names []string, keys [][]byte, found func([]byte, window.State, window.Instant),
) error {
	if members > manyMembers/4 {
		end, err := s.turn(ctx, "export of "+op.Space.Namespace()) // exports rest by themselves
		if err != nil {
			return err
		}
		defer end()
	}
	within, cancel := s.Within(remote.WithTimeout(ctx, pageTimeout))
	defer cancel()
	all := make([]rueidis.LuaExec, len(names))
	for i, name := range names {
		all[i] = rueidis.LuaExec{Keys: keyname.StateAndMembers(name), Args: []string{firstMember(op.Limit)}}
	}
	var replies []rueidis.RedisResult
	err := s.servers.Client(within, slot, func(c rueidis.Client) error {
		replies = peek().ExecMulti(within, c, all...)
		return within.Err()
	})
	if err != nil {
		return err
	}
	for i, reply := range replies {
		k, err := read(reply, names[i])
		if err != nil && conn.ReasonOf(err) == remote.Moving {
			return store.ErrMoved
		}
		if err != nil {
			return err
		}
		if s.clock != nil {
			k.Now = s.clock()
		}
		state, err := k.Words(names[i], op.Limit)
		if err != nil && !errors.As(err, new(*script.StateError)) {
			return err
		}
		if len(state) > 0 {
			found(keys[i], state, k.Now)
		}
	}
	return nil
}
