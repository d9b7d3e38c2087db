package window_test

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the scripts read the same on a machine without tzdata

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/window"
)

// TestScripts runs testdata, the manual of each kind. A block is the life of
// one key: its first line is the limit, each line after it one call.
//
//	sliding 1m quota=6
//	59s 6              take 6 hits 59 seconds after the epoch
//	59s refund 2       or check, record, look; one hit without a number
//	60s count 30s      hits in the last 30 seconds, and history: cells only
//
// Calendar scripts write instants as 2026-03-29T01:59:59+01:00, and limits
// with measure=distinct name a member where others have a number.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		datatest.RunTest(t, path, runScript)
	})
}

func runScript(t *testing.T, d *datatest.TestData) string {
	l, err := window.Compile(scriptLimit(t, d))
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	var s window.State
	width := 0
	lines := strings.Split(strings.TrimSpace(d.Input), "\n")
	for _, line := range lines {
		width = max(width, strings.IndexByte(line+" ", ' '))
	}
	for _, line := range lines {
		words := strings.Fields(line)
		now := scriptInstant(t, d, words[0])
		var said string
		s, said = scriptCall(t, d, l, s, now, words[1:])
		fmt.Fprintf(&out, "%-*s  %s\n", width, words[0], said)
	}
	return out.String()
}

// scriptCall makes the call that words name, by default a take.
func scriptCall(t *testing.T, d *datatest.TestData, l *window.Compiled, s window.State, now window.Instant, words []string) (window.State, string) {
	if s, said, ok := scriptHold(t, d, l, s, now, words); ok {
		return s, said
	}
	verb := "take"
	if len(words) > 0 {
		switch words[0] {
		case "take", "check", "record", "refund", "look", "count", "history":
			verb, words = words[0], words[1:]
		}
	}
	if verb == "count" {
		reading := l.Read(s, now)
		within, err := time.ParseDuration(words[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return s, fmt.Sprintf("%d in the last %s", reading.Count(within), window.Length(within))
	}
	if verb == "history" {
		var cells []string
		for _, c := range l.Read(s, now).History {
			cells = append(cells, fmt.Sprintf("%d from %s for %s", c.Hits, window.Length(c.Start.Sub(0)), window.Length(c.Length)))
		}
		return s, strings.Join(cells, ", ")
	}
	h := window.Hits{N: 1}
	if l.Measure == window.Distinct && len(words) > 0 {
		h.Member = member(words[0])
	} else if len(words) > 0 {
		n, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		h.N = n
	}
	var r window.Result
	switch verb {
	case "check":
		r = l.Check(s, now, h)
		return s, verdict(r, "would be allowed", "would be denied")
	case "record":
		s, r = l.Record(s, now, h)
		return s, "recorded, " + numbers(r)
	case "refund":
		s, r = l.Refund(s, now, h)
		return s, "refunded, " + numbers(r)
	case "look":
		r = l.Check(s, now, window.Hits{})
		said := numbers(r)
		switch {
		case r.Banned:
		case r.ResetAfter > 0:
			said += ", unused in " + window.Length(r.ResetAfter)
		case r.ResetAfter == window.Never:
			said += ", never unused"
		}
		if reading := l.Read(s, now); len(reading.Holds) > 0 || reading.Strikes > 0 {
			said += fmt.Sprintf(", %d holds, %d strikes", len(reading.Holds), reading.Strikes)
		}
		return s, said
	}
	s, r = l.Take(s, now, h)
	return s, verdict(r, "allowed", "denied")
}

func verdict(r window.Result, yes, no string) string {
	switch {
	case r.Quota == window.Unlimited:
		return fmt.Sprintf("counted, %d used", r.Used)
	case r.Allowed:
		return fmt.Sprintf("%s, %d left", yes, r.Remaining)
	case r.RetryAfter == window.Never:
		return fmt.Sprintf("%s, %d left, never", no, r.Remaining) + banned(r)
	case r.Banned:
		return no + banned(r)
	}
	return fmt.Sprintf("%s, %d left, retry after %s", no, r.Remaining, window.Length(r.RetryAfter))
}

func numbers(r window.Result) string {
	if r.Quota == window.Unlimited {
		return fmt.Sprintf("%d used", r.Used)
	}
	return fmt.Sprintf("%d used, %d left", r.Used, r.Remaining) + banned(r)
}

// scriptLimit reads a block's first line: a kind, a length or a period, and
// name=value pairs.
func scriptLimit(t *testing.T, d *datatest.TestData) window.Limit {
	l := window.Limit{Quota: window.Unlimited}
	spec := []string{d.Cmd, ""}
	zone := time.UTC
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			spec[1] = arg.Key
			continue
		}
		if scriptLimitHold(t, d, &l, arg.Key, arg.Vals) {
			continue
		}
		switch v := arg.Vals[0]; arg.Key {
		case "quota":
			l.Quota = scriptNumber(t, d, v)
		case "precision":
			l.Window.Precision = int(scriptNumber(t, d, v))
		case "n":
			l.Window.N = int(scriptNumber(t, d, v))
		case "burst":
			l.Window.Burst = scriptNumber(t, d, v)
		case "anchor":
			l.Window.Anchor = int(scriptNumber(t, d, v))
		case "zone":
			zone = mustZone(t, v)
		case "measure":
			measures := map[string]window.Measure{"count": window.Count, "sum": window.Sum, "distinct": window.Distinct}
			m, ok := measures[v]
			if !ok {
				d.Fatalf(t, "got measure %q, want count, sum or distinct", v)
			}
			l.Measure = m
		case "after": // after=(30, fixed, 24h)
			l.After.Count = scriptNumber(t, d, v)
			scriptWindow(t, d, &l.After.Window, arg.Vals[1], arg.Vals[2], time.UTC)
		default:
			d.Fatalf(t, "got argument %q, want quota, precision, n, burst, anchor, zone, measure or after", arg.Key)
		}
	}
	scriptWindow(t, d, &l.Window, spec[0], spec[1], zone)
	return l
}

func scriptWindow(t *testing.T, d *datatest.TestData, w *window.Window, kind, length string, zone *time.Location) {
	named := kindsOf(func(k window.Kind) bool { return k.String() == kind })
	if len(named) != 1 {
		d.Fatalf(t, "got kind %q, want one of %v", kind, allKinds)
	}
	w.Kind = named[0]
	if w.Kind == window.KindEver {
		return
	}
	if w.Kind == window.KindCalendar {
		for p := window.Minute; p <= window.Year; p++ {
			if p.String() == length {
				w.Period = p
			}
		}
		w.Zone = zone
		return
	}
	var err error
	if w.Length, err = time.ParseDuration(length); err != nil {
		d.Fatalf(t, "%v", err)
	}
}

func scriptNumber(t *testing.T, d *datatest.TestData, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func scriptInstant(t *testing.T, d *datatest.TestData, text string) window.Instant {
	if after, err := time.ParseDuration(text); err == nil {
		return window.Instant(0).Add(after)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.Fatalf(t, "got %q, want a duration after the epoch or an RFC 3339 time", text)
	}
	return window.At(at)
}

// member returns the fingerprint of a name.
func member(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

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
