package redisstore

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What an op asks of the script, the constants of lua/call.lua.
const (
	askLook byte = iota
	askEnforce
	askShadow
	askRecord
	askRefund
	askCountDenied = 8 // with enforce and shadow
)

// The codes of the kinds, which states begin with after their version.
const (
	codeSliding byte = 1 + iota
	codeCells
	codeFixed
	codeCalendar
	codeBucket
	codeAfter
	codeMembers // in a sliding window
	codeMembersFixed
	codeMembersCalendar
)

// unlimited is a quota above every number of hits.
const unlimited = 1<<56 - 1

// put7 appends a number that is below 2^56 in 7 bytes, the lowest first.
func put7(b []byte, n int64) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
}

// get7 is what put7 wrote.
func get7(b string) int64 {
	_ = b[6]
	return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 | int64(b[3])<<24 | int64(b[4])<<32 | int64(b[5])<<40 | int64(b[6])<<48
}

// ask is what verb asks for op.
func ask(verb store.Verb, op *store.Op) byte {
	if op.N <= 0 {
		return askLook
	}
	switch verb {
	case store.Take:
		a := askRecord
		switch op.Role {
		case store.Enforce:
			a = askEnforce
		case store.Shadow:
			a = askShadow
		default:
			return a
		}
		if op.CountDenied {
			a += askCountDenied
		}
		return a
	case store.Record:
		return askRecord
	case store.Refund:
		return askRefund
	}
	return askLook
}

// appendOp appends what the script reads of op, and returns the features that it
// needs. near is about the server's instant.
func appendOp(b []byte, verb store.Verb, op *store.Op, near window.Instant) ([]byte, features) {
	code, asked := codeOf(op.Limit), ask(verb, op)
	b = append(b, code, asked)
	b = put7(b, min(max(op.N, 0), window.MaxHits+1))
	b, f := appendLimit(b, code, op.Limit, near)
	switch {
	case asked == askRefund:
		f |= refunds | slow
	case asked > askEnforce || code != codeSliding:
		f |= slow
	}
	if code >= codeMembers {
		m := fingerprint(op.Member)
		b = append(b, byte(m), byte(m>>8), byte(m>>16), byte(m>>24), byte(m>>32), byte(m>>40), byte(m>>48), byte(m>>56))
	}
	return b, f
}

func codeOf(l *window.Limit) byte {
	switch {
	case l.After.Count > 0:
		return codeAfter
	case l.Measure == window.Distinct && l.Window.Kind == window.KindSliding:
		return codeMembers
	case l.Measure == window.Distinct && l.Window.Kind == window.KindFixed:
		return codeMembersFixed
	case l.Measure == window.Distinct:
		return codeMembersCalendar
	}
	return codeSliding + byte(l.Window.Kind)
}

// appendLimit appends the numbers of a limit.
func appendLimit(b []byte, code byte, l *window.Limit, near window.Instant) ([]byte, features) {
	w := &l.Window
	quota := l.Quota
	if quota == window.Unlimited {
		quota = unlimited
	}
	switch code {
	case codeSliding:
		p := int64(w.Precision)
		if p == 0 {
			p = window.DefaultPrecision
		}
		b = put7(b, quota)
		b = put7(b, micros(w.Length))
		return put7(b, max(1, (quota+p-1)/p)), sliding
	case codeCells:
		n := int64(w.N)
		if n == 0 {
			n = window.DefaultCells
		}
		b = put7(b, quota)
		b = put7(b, micros(w.Length))
		return put7(b, (micros(w.Length)+n-1)/n), cells
	case codeFixed:
		b = put7(b, quota)
		return put7(b, micros(w.Length)), fixed
	case codeCalendar:
		return appendPeriods(put7(b, quota), w, near), calendar
	case codeBucket:
		length := micros(w.Length)
		common := gcd(length, quota)
		b = put7(b, l.Capacity())
		b = put7(b, quota/common)
		b = put7(b, length/common)
		return put7(b, common), bucket
	case codeAfter:
		base, inner := parts(l)
		b = put7(b, l.After.Count)
		b = append(b, codeOf(&base))
		b, f := appendLimit(b, codeOf(&base), &base, near)
		b = append(b, codeOf(&inner))
		b, g := appendLimit(b, codeOf(&inner), &inner, near)
		return b, f | g | after
	case codeMembers:
		b = put7(b, quota)
		return put7(b, micros(w.Length)), membersSliding
	case codeMembersFixed:
		b = put7(b, quota)
		return put7(b, micros(w.Length)), membersFixed
	default:
		return appendPeriods(put7(b, quota), w, near), membersCalendar
	}
}

// parts are the limit that counts up to l's condition, and l without it.
func parts(l *window.Limit) (base, inner window.Limit) {
	inner = *l
	inner.After = window.After{}
	base = window.Limit{Measure: l.Measure, Window: l.After.Window}
	base.Quota = min(l.After.Count+max(l.Capacity(), 0), window.MaxHits)
	if base.Window.Kind == window.KindSliding && base.Window.Precision == 0 {
		base.Window.Precision = int(min(max(base.Quota, window.DefaultPrecision), 1000))
	}
	return base, inner
}

// appendPeriods appends the bounds of the calendar periods before, around and
// after near: a start and three ends.
func appendPeriods(b []byte, w *window.Window, near window.Instant) []byte {
	start, end := w.PeriodBounds(near)
	before, _ := w.PeriodBounds(start - 1)
	b = put7(b, int64(max(before, 0)))
	b = put7(b, int64(max(start, 0)))
	b = put7(b, int64(end))
	return put7(b, int64(w.PeriodEnd(end)))
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
