package peer

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// floorTrain is the most callers whose keys one script run has.
const floorTrain = 64

// floorInCompany returns the least that callers of one or three keys cost who travel
// together: each hands its keys to one of two goroutines, which send the keys of all who wait, in one script run,
// and wake them. The script reads and writes each key, and counts for a caller when all
// its keys have room. There are no deadlines, no answers but one, and no names of keys to
// make.
func floorInCompany(keys int) Peer {
	name, text := "raw: floor in company", `for i = 1, #KEYS do
  local n = tonumber(redis.call('GET', KEYS[i]) or '0')
  if n < 1000000000 then redis.call('SET', KEYS[i], n + 1, 'PX', ARGV[1]) end
end
return ''`
	if keys == 3 {
		name, text = "raw: floor in company, three keys each", `for i = 1, #KEYS, 3 do
  local a, b, c = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  local n, m, o = redis.call('GET', a), redis.call('GET', b), redis.call('GET', c)
  n, m, o = tonumber(n or '0'), tonumber(m or '0'), tonumber(o or '0')
  if n < 1000000000 and m < 1000000000 and o < 1000000000 then
    redis.call('SET', a, n + 1, 'PX', ARGV[1])
    redis.call('SET', b, m + 1, 'PX', ARGV[1])
    redis.call('SET', c, o + 1, 'PX', ARGV[1])
  end
end
return ''`
	}
	return Peer{Name: name, Kind: Cost, Keys: true, Module: "github.com/redis/rueidis", New: func(c Config) (Limiter, error) {
		client, err := openRueidis(c)
		if err != nil {
			return Limiter{}, err
		}
		script, args := rueidis.NewLuaScript(text), []string{"3600000"}
		waiting, ended := make(chan floorSeat, 1024), make(chan struct{})
		var carriers sync.WaitGroup
		for range 2 {
			carriers.Go(func() {
				carryFloor(waiting, ended, "fgh"[:keys], func(all []string) error { return script.Exec(context.Background(), client, all, args).Error() })
			})
		}
		seats := sync.Pool{New: func() any { return make(chan error, 1) }}
		return Limiter{Allow: func(key string) bool {
			back := seats.Get().(chan error)
			defer seats.Put(back)
			waiting <- floorSeat{key, back}
			return <-back == nil
		}, Close: func() {
			close(ended)
			carriers.Wait()
			client.Close()
		}}, nil
	}}
}

type floorSeat struct {
	key  string
	back chan error
}

// carryFloor sends the keys of those who wait until ended.
func carryFloor(waiting chan floorSeat, ended chan struct{}, prefixes string, run func([]string) error) {
	var seats []floorSeat
	var keys []string
	for {
		seats, keys = seats[:0], keys[:0]
		select {
		case s := <-waiting:
			seats = append(seats, s)
		case <-ended:
			return
		}
		runtime.Gosched() // others may come
		for more := true; more && len(seats) < floorTrain; {
			select {
			case s := <-waiting:
				seats = append(seats, s)
			default:
				more = false
			}
		}
		for _, s := range seats {
			for _, prefix := range prefixes {
				keys = append(keys, string(prefix)+s.key)
			}
		}
		err := run(keys)
		for _, s := range seats {
			s.back <- err
		}
	}
}

// floorAlone returns the least that a decision of its own costs: a script that asks for
// the server's time, compares it with a deadline, reads a key and writes it with an expiry.
func floorAlone() Peer {
	return Peer{Name: "raw: floor, one key with a deadline", Kind: Cost, Keys: true, Module: "github.com/redis/rueidis", New: func(c Config) (Limiter, error) {
		client, err := openRueidis(c)
		if err != nil {
			return Limiter{}, err
		}
		script := rueidis.NewLuaScript(`local t = redis.call('TIME')
if t[1] * 1000000 + t[2] > tonumber(ARGV[2]) then return 0 end
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n < 1000000000 then redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[1]) end
return n`)
		return Limiter{Allow: func(key string) bool {
			deadline := strconv.FormatInt(time.Now().Add(time.Second).UnixMicro(), 10)
			return script.Exec(context.Background(), client, []string{"floor:" + key}, []string{"3600000", deadline}).Error() == nil
		}, Close: client.Close}, nil
	}}
}
