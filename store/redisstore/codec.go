package redisstore

import (
	"encoding/binary"
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
	askCountDenied = 8 // with look, enforce and shadow
)

// unlimited is a quota above every number of hits.
const unlimited = 1<<56 - 1

// put7 appends numbers that are below 2^56 in 7 bytes each, the lowest first.
func put7[N ~int64](b []byte, numbers ...N) []byte {
	for _, n := range numbers {
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	return b
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
	asked := askLook
	switch verb {
	case store.Take:
		switch op.Role {
		case store.Enforce:
			asked = askEnforce
		case store.Shadow:
			asked = askShadow
		case store.Look:
		default:
			return askRecord
		}
		if op.CountDenied {
			asked += askCountDenied
		}
	case store.Record:
		asked = askRecord
	case store.Refund:
		asked = askRefund
	}
	return asked
}

// appendOp appends what the script reads of op. near is about the server's
// instant.
func (p *program) appendOp(b []byte, code, asked byte, op *store.Op, near window.Instant) []byte {
	b = append(b, code, asked)
	b = put7(b, min(max(op.N, 0), window.MaxHits+1))
	b = p.appendLimit(b, code, op.Limit, near)
	if code >= codeMembers {
		b = binary.LittleEndian.AppendUint64(b, fingerprint(op.Member))
	}
	return b
}

func codeOf(c *window.Compiled) byte {
	l := c.Limit()
	switch {
	case c.Base() != nil:
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
func (p *program) appendLimit(b []byte, code byte, c *window.Compiled, near window.Instant) []byte {
	l := c.Limit()
	w := &l.Window
	quota := l.Quota
	if quota == window.Unlimited {
		quota = unlimited
	}
	length := micros(w.Length)
	switch code {
	case codeSliding:
		return put7(b, quota, length, c.Group())
	case codeCells:
		return put7(b, quota, length, micros(c.CellWidth()))
	case codeFixed:
		return put7(b, quota, length)
	case codeCalendar:
		around := p.calendars.around(w, near)
		return put7(put7(b, quota), around[:]...)
	case codeBucket:
		hits, per, divisor := c.Rate()
		return put7(b, c.Capacity(), hits, per, divisor)
	case codeAfter:
		base, inner := c.Base(), c.Inner()
		b = append(put7(b, l.After.Count), codeOf(base))
		b = p.appendLimit(b, codeOf(base), base, near)
		b = append(b, codeOf(inner))
		return p.appendLimit(b, codeOf(inner), inner, near)
	case codeMembers:
		return put7(b, quota, length)
	case codeMembersFixed:
		return put7(b, quota, length)
	default:
		around := p.calendars.around(w, near)
		return put7(put7(b, quota), around[:]...)
	}
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
