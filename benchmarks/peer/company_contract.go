package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// contractLua decides a fixed window for each key: it compares the caller's deadline with
// the server's time, reads and writes the state, and answers the hits used, the wait and
// the time until the key is unused. ARGV has the quota, the length of the window in
// milliseconds, and the deadlines in microseconds.
const contractLua = `local t = redis.call('TIME')
local now, quota, length = t[1] * 1000000 + t[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local out = {}
for i = 1, #KEYS do
  if now > tonumber(ARGV[2 + i]) then
    out[i] = struct.pack('<ddd', -1, 0, 0)
  else
    local used, ends, state = 0, now + length * 1000, redis.call('GET', KEYS[i])
    if state then used, ends = struct.unpack('<dd', state) end
    local wait = 0
    if used >= quota then
      wait = ends - now
    else
      used = used + 1
      redis.call('SET', KEYS[i], struct.pack('<dd', used, ends), 'PX', math.ceil((ends - now) / 1000))
    end
    out[i] = struct.pack('<ddd', used, wait, ends - now)
  end
end
return table.concat(out)`

// contractFor is the time that a decision of the floor of the contract may take.
const contractFor = time.Second

// contractSeat is a caller of the floor of the contract, who waits.
type contractSeat struct {
	name, deadline string
	back           chan contractAnswer
}

type contractAnswer struct {
	used, wait, reset int64
	err               error
}

var errContractLate = errors.New("no answer in time")

// contractEnd is the end of all decisions that begin in the same millisecond: a timer for
// each of them would cost more.
type contractEnd struct {
	born     time.Time
	deadline string // on the clock that client and server share here
	over     chan struct{}
}

// contract is the floor of the contract.
type contract struct {
	client  rueidis.Client
	script  *rueidis.Lua
	quota   string
	length  string // in ms
	waiting chan contractSeat
	ended   chan struct{}
	end     atomic.Pointer[contractEnd]
}

// floorOfContract returns the least that callers cost who travel together and get what
// weir promises to each of them: a deadline of its own, after which nothing is counted and
// the caller waits no more; a key whose name is made from the limit's and the caller's;
// and the hits used, the wait and the time until the key is unused. The limit is a fixed
// window. Two goroutines carry the keys of all who wait, as for the floor in company.
func floorOfContract() Peer {
	return Peer{Name: "raw: floor in company, with deadlines and answers", Kind: Cost, Keys: true, Module: "github.com/redis/rueidis", New: func(c Config) (Limiter, error) {
		client, err := openRueidis(c)
		if err != nil {
			return Limiter{}, err
		}
		f := &contract{
			client: client, script: rueidis.NewLuaScript(contractLua), waiting: make(chan contractSeat, 1024), ended: make(chan struct{}),
			quota: strconv.FormatInt(c.Quota, 10), length: strconv.FormatInt(c.Window.Milliseconds(), 10),
		}
		var carriers sync.WaitGroup
		for range 2 {
			carriers.Go(f.carry)
		}
		seats := sync.Pool{New: func() any { return make(chan contractAnswer, 1) }}
		return Limiter{Allow: func(key string) bool {
			end := f.soon()
			back := seats.Get().(chan contractAnswer)
			f.waiting <- contractSeat{"floor:contract:" + key, end.deadline, back}
			select {
			case a := <-back:
				seats.Put(back)
				return a.err == nil && a.wait == 0 && a.used > 0 && a.reset > 0
			case <-end.over:
				return false // the answer may come to back later
			}
		}, Close: func() {
			close(f.ended)
			carriers.Wait()
			client.Close()
		}}, nil
	}}
}

// soon returns the end of a decision that begins now.
func (f *contract) soon() *contractEnd {
	if e := f.end.Load(); e != nil && time.Since(e.born) < time.Millisecond {
		return e
	}
	now := time.Now()
	e := &contractEnd{born: now, deadline: strconv.FormatInt(now.Add(contractFor).UnixMicro(), 10), over: make(chan struct{})}
	time.AfterFunc(contractFor+time.Millisecond, func() { close(e.over) })
	f.end.Store(e)
	return e
}

// carry sends the keys of those who wait until the floor has ended.
func (f *contract) carry() {
	var seats []contractSeat
	var keys, args []string
	for {
		seats, keys, args = seats[:0], keys[:0], append(args[:0], f.quota, f.length)
		select {
		case s := <-f.waiting:
			seats = append(seats, s)
		case <-f.ended:
			return
		}
		runtime.Gosched() // others may come
		for more := true; more && len(seats) < floorTrain; {
			select {
			case s := <-f.waiting:
				seats = append(seats, s)
			default:
				more = false
			}
		}
		for _, s := range seats {
			keys, args = append(keys, s.name), append(args, s.deadline)
		}
		reply, err := f.script.Exec(context.Background(), f.client, keys, args).ToString()
		for i, s := range seats {
			s.back <- answerOf(reply, i, err)
		}
	}
}

// answerOf returns the answer to the caller with number i.
func answerOf(reply string, i int, err error) contractAnswer {
	if err != nil {
		return contractAnswer{err: err}
	}
	number := func(n int) int64 {
		return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(reply[24*i+8*n:]))))
	}
	a := contractAnswer{used: number(0), wait: number(1), reset: number(2)}
	if a.used < 0 {
		a.err = errContractLate
	}
	return a
}
