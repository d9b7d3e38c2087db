package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// A log has at most so many entries, of so long ago.
const (
	logSize = 10_000
	logAge  = 24 * time.Hour
)

var addLog = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.AddLog) })

// Log adds entries to a log that is kept beside the counters, for all stores on the prefix.
// A log has the newest 10,000 entries of the last 24 hours. at has the instant of each entry.
// An entry that is in the log already is not added again, so that a call that failed can be
// repeated. A call should have at most some hundred entries.
func (s *Store) Log(ctx context.Context, name string, at []window.Instant, entries []string) error {
	if len(entries) == 0 {
		return nil
	}
	args := make([]string, 3, 3+2*len(entries))
	newest := at[0]
	for i, entry := range entries {
		newest = max(newest, at[i])
		args = append(args, strconv.FormatInt(int64(at[i]), 10), entry)
	}
	args[0] = strconv.FormatInt(int64(newest.Add(-logAge)), 10)
	args[1] = strconv.Itoa(logSize)
	args[2] = strconv.FormatInt(logAge.Milliseconds(), 10)
	key := s.codec.Names().Log(name)
	return s.failed(ctx, s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (window.Instant, error) {
		return 0, addLog().Exec(ctx, c, []string{key}, args).Error()
	}))
}

// ReadLog returns the newest entries of a log, at most n, the oldest one first.
func (s *Store) ReadLog(ctx context.Context, name string, n int) (entries []string, err error) {
	key := s.codec.Names().Log(name)
	err = s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (window.Instant, error) {
		entries, err = c.Do(ctx, c.B().Zrange().Key(key).Min(strconv.Itoa(-n)).Max("-1").Build()).AsStrSlice()
		return 0, err
	})
	return entries, s.failed(ctx, err)
}
