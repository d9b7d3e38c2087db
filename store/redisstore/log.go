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

// Log adds entries, at most a few hundred, to a log that is stored with the counters for all
// stores on the prefix. It returns the newest n of the log, the oldest one first. A log has the
// newest 10,000 entries of the last 24 hours. at has the instant of each entry. An entry that
// is in the log already is not added again, so that a call that failed can be repeated.
func (s *Store) Log(ctx context.Context, name string, at []window.Instant, entries []string, n int) (newest []string, err error) {
	key := s.codec.Names().Log(name)
	args := make([]string, 3, 3+2*len(entries))
	var last window.Instant
	for i, entry := range entries {
		last = max(last, at[i])
		args = append(args, strconv.FormatInt(int64(at[i]), 10), entry)
	}
	args[0] = strconv.FormatInt(int64(last.Add(-logAge)), 10)
	args[1] = strconv.Itoa(logSize)
	args[2] = strconv.FormatInt(logAge.Milliseconds(), 10)
	err = s.ask(ctx, conn.SlotOf([]byte(key)), func(ctx context.Context, c rueidis.Client) (err error) {
		if len(entries) > 0 {
			if err := addLog().Exec(ctx, c, []string{key}, args).Error(); err != nil {
				return err
			}
		}
		if n > 0 {
			newest, err = c.Do(ctx, c.B().Zrange().Key(key).Min(strconv.Itoa(-n)).Max("-1").Build()).AsStrSlice()
		}
		return err
	})
	return newest, s.failed(ctx, err)
}
