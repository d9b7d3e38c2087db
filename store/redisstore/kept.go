package redisstore

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
)

var (
	keep = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.ChangeRegister) })
	kept = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.ReadRegister) })
)

// Keep changes the register called name, which all stores on the prefix have in common, if its
// version is version: it sets each of fields to the value beside it, or removes it if that is empty.
// A register without entries has the version 0. Keep returns the version afterwards, or 0 if
// another store has changed the register meanwhile. A change whose answer was lost may have been made.
func (s *Store) Keep(ctx context.Context, name string, version int64, fields, values []string) (now int64, err error) {
	args := append(make([]string, 0, 1+2*len(fields)), strconv.FormatInt(version, 10))
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
