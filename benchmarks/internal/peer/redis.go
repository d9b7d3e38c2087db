package peer

import (
	"context"
	_ "embed"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
	"github.com/zeromicro/go-zero/core/limit"
	zeroredis "github.com/zeromicro/go-zero/core/stores/redis"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

const (
	rueidisModule = "github.com/redis/rueidis"
	incrLua       = `return redis.call("INCR", KEYS[1])`
	hour          = "3600000" // in ms, the expiry of keys of the baselines
)

// Redis returns three raw costs and the peers that count in a Redis server.
func Redis() []Peer {
	return slices.Concat(rawRueidis(1), []Peer{
		{Name: "raw: EVALSHA of one INCR, go-redis", Kind: Cost, Keys: true, Module: "github.com/redis/go-redis/v9", New: func(c Config) Limiter {
			client, lua, ctx := openGoRedis(c), redis.NewScript(incrLua), context.Background()
			return Limiter{Allow: func(key string) bool { return lua.Run(ctx, client, []string{key}).Err() == nil }, Close: closing(client)}
		}},
	}, weirRedis(), othersOverRedis())
}

// Batched returns the rows for callers whose calls share script runs: the raw costs of a Redis server, baselines, and
// weir.
func Batched() []Peer {
	return slices.Concat(rawRueidis(0), []Peer{
		baselineOfSixteen(),
		batched("raw: baseline, batched", countLua, "f", false),
		batched("raw: baseline, batched, three keys each", threeLua, "fgh", false),
		batched("raw: baseline, batched, with deadlines and answers", fixedLua, "f", true),
	}, weirRedis(), []Peer{engineOver("weir sliding, three rules", 3, Config.store)})
}

// Unbatched returns rows for a server that decides each call by itself: on a cluster nearly every key has its own slot.
func Unbatched() []Peer {
	return slices.Concat(rawRueidis(0), []Peer{baselineUnbatched()}, weirRedis(), []Peer{engineOver("weir sliding, three rules", 3, Config.store)})
}

// Decides returns how many keys a call decides.
func (p Peer) Decides() int { return max(1, p.Several) }

// rawRueidis returns INCR and a script of one INCR with the client that weir uses. One of them is the reference.
func rawRueidis(reference int) []Peer {
	ctx := context.Background()
	peers := []Peer{
		onRueidis("raw: INCR, rueidis", func(client rueidis.Client, key string) error {
			return client.Do(ctx, client.B().Incr().Key(key).Build()).Error()
		}),
		onRueidis("raw: EVALSHA of one INCR, rueidis", script(incrLua, func(key string) ([]string, []string) { return []string{key}, nil })),
	}
	peers[reference].Reference = true
	return peers
}

// onRueidis returns a raw cost: one call of a Redis server.
func onRueidis(name string, call func(client rueidis.Client, key string) error) Peer {
	return Peer{Name: name, Kind: Cost, Keys: true, Module: rueidisModule, New: func(c Config) Limiter {
		client := openRueidis(c)
		return Limiter{Allow: func(key string) bool { return call(client, key) == nil }, Close: client.Close}
	}}
}

// script returns a call that runs a script.
func script(lua string, arguments func(key string) (keys, args []string)) func(rueidis.Client, string) error {
	s := rueidis.NewLuaScript(lua)
	return func(client rueidis.Client, key string) error {
		keys, args := arguments(key)
		return s.Exec(context.Background(), client, keys, args).Error()
	}
}

// baselineOfSixteen returns the minimum cost of a script that decides 16 keys.
func baselineOfSixteen() Peer {
	const atOnce = 16
	var next atomic.Uint64
	p := onRueidis("raw: baseline, a script for 16 keys", script(countLua, func(string) ([]string, []string) {
		keys, first := make([]string, atOnce), next.Add(atOnce)
		for i := range keys {
			// Neighbours are far from each other in the server's memory.
			keys[i] = "baseline" + strconv.FormatUint((first+uint64(i))*7919%10_000, 10)
		}
		return keys, []string{hour}
	}))
	p.Several = atOnce
	return p
}

// baselineUnbatched returns the least that its own decision costs: a script that asks for the server's time,
// compares it with a deadline, reads a key and writes it with an expiry.
func baselineUnbatched() Peer {
	return onRueidis("raw: baseline, one key with a deadline", script(deadlineLua, func(key string) ([]string, []string) {
		return []string{"baseline:" + key}, []string{hour, strconv.FormatInt(time.Now().Add(time.Second).UnixMicro(), 10)}
	}))
}

// The scripts of the baselines.
var (
	//go:embed lua/count.lua
	countLua string
	//go:embed lua/three.lua
	threeLua string
	//go:embed lua/fixed.lua
	fixedLua string
	//go:embed lua/deadline.lua
	deadlineLua string
)

// mostCallers is the most callers whose keys one script run has.
const mostCallers = 64

// caller waits for its answer in back.
type caller struct {
	key, deadline string
	back          chan bool
}

// batched returns the minimum cost of callers whose calls are batched: two goroutines send the keys of all who wait in
// one script run, and wake the callers. A caller has a key for each byte of prefixes. With deadlines, each
// caller also gets what weir promises: a deadline after which nothing is counted, and the hits used, the wait and
// the time until the key is unused.
func batched(name, lua, prefixes string, deadlines bool) Peer {
	return Peer{Name: name, Kind: Cost, Keys: true, Module: rueidisModule, New: func(c Config) Limiter {
		client, script, fixed := openRueidis(c), rueidis.NewLuaScript(lua), []string{hour}
		if deadlines {
			fixed = []string{strconv.FormatInt(c.Window.Milliseconds(), 10), strconv.FormatInt(c.Quota, 10)}
		}
		waiting, backs := make(chan caller, 1024), sync.Pool{New: func() any { return make(chan bool, 1) }}
		var flushers sync.WaitGroup
		for range 2 {
			flushers.Go(func() {
				for first := range waiting {
					callers, keys, args := []caller{first}, []string(nil), slices.Clone(fixed)
					runtime.Gosched() // more callers may arrive
				gather:
					for len(callers) < mostCallers {
						select {
						case c := <-waiting:
							callers = append(callers, c)
						default: // the other goroutine may have taken the last one
							break gather
						}
					}
					for _, c := range callers {
						for _, prefix := range prefixes {
							keys = append(keys, string(prefix)+c.key)
						}
						if deadlines {
							args = append(args, c.deadline)
						}
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					reply, err := script.Exec(ctx, client, keys, args).ToString()
					cancel()
					for i, c := range callers {
						c.back <- err == nil && (!deadlines || admitted(reply[24*i:]))
					}
				}
			})
		}
		return Limiter{Allow: func(key string) bool {
			back, deadline := backs.Get().(chan bool), ""
			defer backs.Put(back)
			if deadlines {
				key, deadline = "baseline:contract:"+key, strconv.FormatInt(time.Now().Add(time.Second).UnixMicro(), 10)
			}
			waiting <- caller{key, deadline, back}
			return <-back
		}, Close: func() {
			close(waiting)
			flushers.Wait()
			client.Close()
		}}
	}}
}

// admitted reads the hits used, the wait and the time until the key is unused.
func admitted(answer string) bool {
	number := func(i int) int64 {
		return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(answer[8*i : 8*i+8]))))
	}
	used, wait, reset := number(0), number(1), number(2)
	return used > 0 && wait == 0 && reset > 0
}

// othersOverRedis returns the other limiters that count in a Redis server.
func othersOverRedis() []Peer {
	return []Peer{
		{Name: "redis_rate (GCRA)", Module: "github.com/go-redis/redis_rate/v10", Keys: true, New: func(c Config) Limiter {
			client := openGoRedis(c)
			l, ctx := redis_rate.NewLimiter(client), context.Background()
			rate := redis_rate.Limit{Rate: int(c.Quota), Burst: int(c.Quota), Period: c.Window}
			return Limiter{Allow: func(key string) bool {
				r, err := l.Allow(ctx, key, rate)
				return err == nil && r.Allowed == 1
			}, Close: closing(client)}
		}},
		{Name: "ulule/limiter (fixed)", Module: "github.com/ulule/limiter/v3", Keys: true, New: func(c Config) Limiter {
			client := openGoRedis(c)
			s := measure.Must(ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "ulule"}))
			return Limiter{Allow: ululeAllow(s, c), Close: closing(client)}
		}},
		{Name: "go-zero PeriodLimit (fixed)", Module: "github.com/zeromicro/go-zero", Keys: true, New: func(c Config) Limiter {
			l := limit.NewPeriodLimit(int(c.Window.Seconds()), int(c.Quota), openGoZero(c), "period:")
			return Limiter{Allow: func(key string) bool {
				state, err := l.Take(key)
				return err == nil && state != limit.OverQuota
			}}
		}},
		{
			Name: "go-zero TokenLimiter (bucket)", Module: "github.com/zeromicro/go-zero", Keys: true,
			Note: "one per key in a sync.Map; its rate is in whole hits per second, rounded up here",
			New: func(c Config) Limiter {
				r, rate := openGoZero(c), int((float64(c.Quota)+c.Window.Seconds()-1)/c.Window.Seconds())
				return each(func(key string) *limit.TokenLimiter { return limit.NewTokenLimiter(rate, int(c.Quota), r, key) }, (*limit.TokenLimiter).Allow)
			},
		},
		// By a read and a compare-and-swap.
		{Name: "throttled (GCRA)", Module: "github.com/throttled/throttled/v2", Keys: true, New: func(c Config) Limiter {
			client := openGoRedis(c)
			l := throttledOn(measure.Must(goredisstore.NewCtx(client, "throttled:")), c)
			l.Close = closing(client)
			return l
		}},
	}
}

func openRueidis(c Config) rueidis.Client {
	return measure.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Redis}, DisableCache: true}))
}

// openGoRedis returns a client with the defaults of go-redis: ten connections per core.
func openGoRedis(c Config) *redis.Client { return redis.NewClient(&redis.Options{Addr: c.Redis}) }

func closing(client *redis.Client) func() { return func() { _ = client.Close() } } // nothing is lost

func openGoZero(c Config) *zeroredis.Redis {
	return measure.Must(zeroredis.NewRedis(zeroredis.RedisConf{Host: c.Redis, Type: zeroredis.NodeType}))
}
