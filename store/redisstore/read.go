package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	state, now, err := s.peek(ctx, op)
	if err != nil {
		return window.Reading{}, err
	}
	return op.Limit.Read(state, now), nil
}

// peek returns the state of op's key in words, empty when there is none, and the
// server's instant.
func (s *Store) peek(ctx context.Context, op *store.Op) (state window.State, now window.Instant, err error) {
	if listed(op.Limit) > manyMembers {
		end, err := s.turn(ctx, op.Space.Namespace())
		if err != nil {
			return nil, 0, err
		}
		defer end()
	}
	err = s.ask(ctx, s.slotOf(op), func(ctx context.Context, c rueidis.Client) error {
		key := string(s.codec.Names().Append(nil, op))
		kept, err := fetch(ctx, c, key, firstMember(op.Limit))
		if err != nil {
			return err
		}
		now = kept.Now
		state, err = kept.Words(key, op.Limit)
		return err
	})
	if s.clock != nil {
		now = s.clock()
	}
	return state, now, s.failed(ctx, err)
}

const (
	manyMembers = 1000 // Redis needs a millisecond to list so many
	turnTimeout = 5 * time.Second
)

// turn waits until no other caller lists many members, because Redis decides nothing meanwhile. One caller of each
// namespace waits for those of others. The caller calls end when it is done; the next one then waits for as long as
// it took.
func (s *Store) turn(ctx context.Context, namespace string) (end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	leave, err := remote.Turn(waiting, &s.turns, "of "+namespace, "all")
	if err != nil {
		return nil, s.failed(ctx, remote.ErrBusy)
	}
	began := time.Now()
	return func() { time.AfterFunc(time.Since(began), leave) }, nil
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	return s.failed(ctx, s.ask(ctx, s.slotOf(op), func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Unlink().Key(s.codec.Names().All(op)...).Build()).Error()
	}))
}

// Inspect returns a page of text about one key in Redis, for people. key is the
// name of the key in Redis. The state in it does not include the length of its
// window. So the page still shows hits that have left the window, until the key is
// used again or expires. The members of a distinct limit are in separate keys from the
// state; the page of such a key shows the state, too.
func (s *Store) Inspect(ctx context.Context, key string) (string, error) {
	page, err := s.inspect(ctx, key)
	if beside, ok := keyname.StateOf(key); ok && (errors.Is(err, script.ErrForeign) || errors.Is(err, script.ErrNoKey)) {
		if kept, _ := s.inspect(ctx, beside); kept != "" {
			return fmt.Sprintf("key      %s\nkind     beside the state of its members:\n\n%s", key, kept), nil
		}
	}
	return page, err
}

func (s *Store) inspect(ctx context.Context, key string) (string, error) {
	var kept script.Kept
	err := s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (err error) {
		kept, err = fetch(ctx, c, key, allMembers)
		return err
	})
	if err != nil {
		return "", err
	}
	return kept.Describe(key)
}

// ask calls f with the client of the node that serves slot.
func (s *Store) ask(ctx context.Context, slot int, f func(context.Context, rueidis.Client) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := s.Within(ctx)
	defer cancel()
	return s.servers.Client(within, slot, func(c rueidis.Client) error { return f(within, c) })
}

var peek = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.Peek().Text) })

// What a peek reads of the members in a sorted set.
const (
	allMembers = "0"
	lastMember = "-1" // and how many there are
)

// firstMember returns what a peek reads of members under limit. In a period all of them
// leave together, and no reading has more than their number.
func firstMember(limit *window.Compiled) string {
	if limit.Measure == window.Distinct && limit.Window.Kind != window.KindSliding {
		return lastMember
	}
	return allMembers
}

// listed returns how many members a peek at a key lists under limit, at most.
func listed(limit *window.Compiled) int64 {
	if limit.Measure != window.Distinct || firstMember(limit) != allMembers {
		return 0
	}
	return max(limit.Quota, limit.Highest)
}

// fetch reads what Redis keeps for key, and of members those from first on.
func fetch(ctx context.Context, c rueidis.Client, key, first string) (script.Kept, error) {
	return read(peek().Exec(ctx, c, keyname.StateAndMembers(key), []string{first}), key)
}

// read returns the reply to a peek at key.
func read(reply rueidis.RedisResult, key string) (k script.Kept, _ error) {
	all, err := reply.ToArray()
	if said, ok := rueidis.IsRedisErr(err); ok && strings.Contains(said.Error(), "WRONGTYPE") {
		err = fmt.Errorf("it holds no string: %w", script.ErrForeign)
	} else if err == nil && len(all) != 6 {
		err = fmt.Errorf("the script answers %d values", len(all))
	}
	if err != nil {
		return k, script.About(err, key)
	}
	now, err1 := all[0].AsInt64()
	ms, err2 := all[2].AsInt64()
	if k.State, err = all[1].ToString(); rueidis.IsRedisNil(err) {
		err = nil // there is no key
	}
	members, err3 := all[3].AsInt64()
	var err4, err5 error
	k.Last, err4 = all[4].AsStrSlice()
	k.Uses, err5 = all[5].AsStrMap()
	k.Members = int(min(members, window.MaxEntries))
	k.Now, k.TTL = window.Instant(now), time.Duration(ms)*time.Millisecond
	return k, errors.Join(err, err1, err2, err3, err4, err5)
}
