package peer

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// atOnce is how many keys a call of the floor decides.
const atOnce = 16

// Company returns the raw costs of a Redis server and weir's limiters in it: INCR, a
// script of one INCR, the floors, and weir.
func Company() []Peer {
	return join(rawRueidis(), []Peer{floor(), floorInCompany(1), floorInCompany(3), floorOfContract()}, weirRedis(), []Peer{weirThree()})
}

// Apart returns rows for a server that decides each call by itself: on a cluster nearly
// every key is in a slot of its own.
func Apart() []Peer {
	return join(rawRueidis(), []Peer{floorAlone()}, weirRedis(), []Peer{weirThree()})
}

// rawRueidis returns the raw costs with the client that weir uses, beside INCR.
func rawRueidis() []Peer {
	var raw []Peer
	for _, p := range rawRedis() {
		if p.Module == "github.com/redis/rueidis" {
			p.Reference = strings.Contains(p.Name, "INCR, rueidis") && !strings.Contains(p.Name, "EVALSHA")
			raw = append(raw, p)
		}
	}
	return raw
}

// Decides returns how many keys a call decides.
func (p Peer) Decides() int { return max(1, p.Several) }

// floor returns what a script that decides several keys costs at least.
func floor() Peer {
	lua := rueidis.NewLuaScript(`for i = 1, #KEYS do
  local n = tonumber(redis.call('GET', KEYS[i]) or '0')
  if n < 1000000000 then redis.call('SET', KEYS[i], n + 1, 'PX', ARGV[1]) end
end
return ''`)
	return Peer{
		Name: "raw: floor, a script for 16 keys", Kind: Cost, Keys: true, Several: atOnce, Module: "github.com/redis/rueidis",
		New: func(c Config) (Limiter, error) {
			client, err := openRueidis(c)
			if err != nil {
				return Limiter{}, err
			}
			var next atomic.Uint64
			return Limiter{Allow: func(string) bool {
				keys, first := make([]string, atOnce), next.Add(atOnce)
				for i := range keys {
					// Neighbours are far from each other in the server's memory.
					keys[i] = "floor" + strconv.FormatUint((first+uint64(i))*7919%10_000, 10)
				}
				return lua.Exec(context.Background(), client, keys, []string{"3600000"}).Error() == nil
			}, Close: client.Close}, nil
		},
	}
}
