package window_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/window"
)

// Calls about holds in scripts:
//
//	0s 5 as a          take 5 hits, held as a
//	9s settle a 3      or settle a, which means what was held, and then cancel a
//	                   and renew a
//	9s give back 2 of 0s   of what was counted without a hold
//	9s refund all
//
// and in limits hold=5m, unsettled=release, max-holds=3 and
// ban=(FOR, FACTOR, MOST, FORGET), of which the last three can be missing.

// scriptHold makes the call that words name, if it is about holds.
func scriptHold(t *testing.T, d *datatest.TestData, l *window.Compiled, s window.State, now window.Instant, words []string) (_ window.State, said string, ok bool) {
	id := func(name string) (id [12]byte) {
		copy(id[:], name)
		return id
	}
	amount := func(at int) int64 {
		if at >= len(words) {
			return -1
		}
		return scriptNumber(t, d, words[at])
	}
	var r window.Result
	switch {
	case len(words) > 1 && words[len(words)-2] == "as":
		n := int64(1)
		if len(words) == 3 {
			n = scriptNumber(t, d, words[0])
		}
		s, r = l.TakeHold(s, now, window.Hits{N: n}, id(words[len(words)-1]))
		word := "held"
		if !r.Held {
			word = "allowed"
		}
		return s, verdict(r, word, "denied"), true
	case len(words) == 0:
		return s, "", false
	case words[0] == "settle":
		s, r = l.Settle(s, now, id(words[1]), amount(2))
		return s, ended(r, "settled"), true
	case words[0] == "cancel":
		s, r = l.Cancel(s, now, id(words[1]))
		return s, ended(r, "cancelled"), true
	case words[0] == "renew":
		s, r = l.Renew(s, now, id(words[1]))
		return s, ended(r, "renewed"), true
	case words[0] == "give":
		s, r = l.GiveBack(s, now, scriptInstant(t, d, words[4]), window.Hits{N: amount(2)})
		return s, "given back, " + numbers(r), true
	case strings.Join(words, " ") == "refund all":
		s, r = l.Refund(s, now, window.Hits{N: window.All})
		return s, "refunded, " + numbers(r), true
	}
	return s, "", false
}

func ended(r window.Result, done string) string {
	if !r.Held {
		done = "not held"
	}
	return done + ", " + numbers(r)
}

// scriptLimitHold sets the argument of a limit, if it is about holds or bans.
func scriptLimitHold(t *testing.T, d *datatest.TestData, l *window.Limit, key string, values []string) bool {
	length := func(at int) time.Duration {
		if at >= len(values) {
			return 0
		}
		length, err := time.ParseDuration(values[at])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return length
	}
	switch key {
	case "hold":
		l.Hold = length(0)
	case "unsettled":
		l.Release = values[0] == "release"
	case "max-holds":
		n, err := strconv.Atoi(values[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		l.MaxHolds = n
	case "ban":
		l.Ban = window.Ban{For: length(0), Most: length(2), Forget: length(3)}
		if len(values) > 1 {
			l.Ban.Factor = scriptNumber(t, d, values[1])
		}
	default:
		return false
	}
	return true
}

// banned returns what a result says about a ban.
func banned(r window.Result) string {
	if !r.Banned {
		return ""
	}
	return fmt.Sprintf(", banned for %s", window.Length(r.ResetAfter))
}
