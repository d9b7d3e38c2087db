package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

var (
	keep = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.ChangeRegister) })
	kept = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.ReadRegister) })
)

// outboxes begins the names of registers of events that wait for a webhook. They expire outboxAge after their last
// change, an hour after the time for which events are sent, because nobody removes those of a webhook that was
// removed.
const (
	outboxes  = "events/"
	outboxAge = 25 * time.Hour
)

// Keep changes the register called name, which all stores on the prefix have in common, if its
// version is version: it sets each of fields to the value beside it, or removes it if that is empty.
// A register without entries has the version 0. Keep returns the version afterwards, or 0 if
// another store has changed the register meanwhile. A change whose answer was lost may have been made.
func (s *Store) Keep(ctx context.Context, name string, version int64, fields, values []string) (now int64, err error) {
	args := append(make([]string, 0, 2+2*len(fields)), strconv.FormatInt(version, 10), "0")
	if strings.HasPrefix(name, outboxes) {
		args[1] = strconv.FormatInt(outboxAge.Milliseconds(), 10)
	}
	for i := range fields {
		args = append(args, fields[i], values[i])
	}
	keys := s.codec.Names().Kept(name)
	err = s.ask(ctx, conn.SlotOf([]byte(keys[0])), func(ctx context.Context, c rueidis.Client) (err error) {
		now, err = keep().Exec(ctx, c, keys, args).AsInt64()
		return err
	})
	return now, s.failed(ctx, err)
}

// Kept returns what has changed in the register called name, at most so many fields, in the order of their
// changes, each with its value, which is empty if it was removed. since is what the last call returned as
// next, and zero in the first: the version up to which the caller has read, and the one that the register had when
// it began to. Nothing is left to read when both are equal. If again is set, the caller must first drop what it
// knows: the answer begins with the first entry, because since is zero, too old, or of a register that was lost.
func (s *Store) Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	keys := s.codec.Names().Kept(name)
	args := []string{strconv.FormatInt(since[0], 10), strconv.FormatInt(since[1], 10), strconv.Itoa(most)}
	err = s.ask(ctx, conn.SlotOf([]byte(keys[0])), func(ctx context.Context, c rueidis.Client) error {
		answer, err := kept().Exec(ctx, c, keys, args).ToArray()
		if err != nil {
			return err
		}
		if len(answer)%2 == 0 {
			return errors.New("the script answers an even number of values")
		}
		first, err1 := answer[0].AsInt64()
		version, err2 := answer[1].AsInt64()
		begun, err3 := answer[2].AsInt64()
		again, next, fields, values, err = first > 0, [2]int64{version, begun}, nil, nil, errors.Join(err1, err2, err3)
		for i := 3; i < len(answer) && err == nil; i += 2 {
			var field, value string
			if field, err = answer[i].ToString(); err == nil {
				value, err = answer[i+1].ToString()
			}
			fields, values = append(fields, field), append(values, value)
		}
		return err
	})
	return fields, values, next, again, s.failed(ctx, err)
}

// logSize is the maximum number of entries of a log.
const logSize = 10_000

var addLog = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.AddLog) })

// Log adds entries, at most a few hundred, to a log that is stored with the counters for all stores on the prefix. It
// returns the newest n of the log but for the newest skip, the oldest one first. A log has the newest 10,000 entries
// that are not older than age. at has the instant of each entry. An entry that is in the log already is not added
// again, so that a call that failed can be repeated.
func (s *Store) Log(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, skip, n int) (newest []string, err error) {
	key := s.codec.Names().Log(name)
	args := append(make([]string, 0, 3+2*len(entries)), strconv.FormatInt(age.Microseconds(), 10),
		strconv.Itoa(logSize), strconv.FormatInt(age.Milliseconds(), 10))
	for i, entry := range entries {
		args = append(args, strconv.FormatInt(int64(at[i]), 10), entry)
	}
	err = s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (err error) {
		if len(entries) > 0 {
			if err := addLog().Exec(ctx, c, []string{key}, args).Error(); err != nil {
				return err
			}
		}
		if n > 0 {
			newest, err = c.Do(ctx, c.B().Zrange().Key(key).Min(strconv.Itoa(-skip-n)).Max(strconv.Itoa(-skip-1)).Build()).AsStrSlice()
		}
		return err
	})
	return newest, s.failed(ctx, err)
}

// Secrets returns the secrets under which the receipts of this store are valid; see
// [remote.Secrets]. An engine looks for this method and the next one (hook.Keyed).
func (s *Store) Secrets(again bool, own ...[16]byte) [][16]byte {
	return s.secrets.List(again, own...)
}

// RotateSecret makes a new secret for receipts, in Redis; see [remote.Secrets].
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	return s.secrets.Rotate(ctx, keep)
}

// agree returns the secret in Redis, and makes own the secret if there is none.
func (s *Store) agree(ctx context.Context, own []byte) (secret []byte, err error) {
	err = s.atSecret(ctx, func(ctx context.Context, c rueidis.Client, key string) error {
		replies := c.DoMulti(ctx,
			c.B().Set().Key(key).Value(script.EncodeSecret(own)).Nx().Build(),
			c.B().Get().Key(key).Build())
		value, err := replies[1].ToString()
		if rueidis.IsRedisNil(err) {
			err = replies[0].Error() // a server that is full, or a replica, answers reads
		}
		if err != nil {
			return err
		}
		secret, err = script.DecodeSecret(key, value)
		return err
	})
	return secret, err
}

// replaceSecret makes next the secret if old still is.
func (s *Store) replaceSecret(ctx context.Context, old, next []byte) (replaced bool, err error) {
	err = s.atSecret(ctx, func(ctx context.Context, c rueidis.Client, key string) error {
		n, err := c.Do(ctx, c.B().Eval().Script(script.RotateSecret).Numkeys(1).Key(key).
			Arg(script.EncodeSecret(old), script.EncodeSecret(next)).Build()).AsInt64()
		replaced = n > 0
		return err
	})
	return replaced, err
}

// atSecret calls do with the key of the secret and the client of its node.
func (s *Store) atSecret(ctx context.Context, do func(ctx context.Context, c rueidis.Client, key string) error) error {
	key := s.codec.Names().Secret()
	return s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) error { return do(ctx, c, key) })
}
