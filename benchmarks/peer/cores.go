package peer

import "slices"

// crowded names the other limiters whose gain from several cores is measured.
var crowded = []string{
	"x/time/rate in a sync.Map", "sethvargo/go-limiter", "throttled, map", "RussellLuo/slidingwindow in a sync.Map",
	"juju/ratelimit in a sync.Map", "failsafe-go bursty in a sync.Map",
}

// CrowdedHot returns the limiters that several cores ask about one key.
func CrowdedHot() []Peer { return join([]Peer{rawXsync(true)}, weirHot(), named(crowded)) }

// CrowdedMillion returns the limiters that several cores ask about many keys.
func CrowdedMillion() []Peer {
	var ours []Peer
	for _, p := range weirMillion() {
		if p.Hits == 0 {
			ours = append(ours, p)
		}
	}
	return join([]Peer{rawShards(), rawXsync(false)}, ours, named(crowded))
}

// named returns the limiters in memory with the given names.
func named(names []string) []Peer {
	var some []Peer
	for _, p := range inMemory() {
		if slices.Contains(names, p.Name) {
			some = append(some, p)
		}
	}
	return some
}
