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

// logSize is the maximum number of entries of a log.
const logSize = 10_000

var addLog = sync.OnceValue(func() *rueidis.Lua { return rueidis.NewLuaScript(script.AddLog) })

// Log adds entries, at most a few hundred, to a log that is stored with the counters for all
// stores on the prefix. It returns the newest n of the log, the oldest one first. A log has the
// newest 10,000 entries that are not older than age. at has the instant of each entry. An entry that
// is in the log already is not added again, so that a call that failed can be repeated.
func (s *Store) Log(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, n int) (newest []string, err error) {
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
			newest, err = c.Do(ctx, c.B().Zrange().Key(key).Min(strconv.Itoa(-n)).Max("-1").Build()).AsStrSlice()
		}
		return err
	})
	return newest, s.failed(ctx, err)
}
