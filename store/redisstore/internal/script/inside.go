package script

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Inside returns how long what op has counted at an instant stays in its window,
// or less. With a condition there are two windows, and the key is in use until
// the hits are out of both.
func Inside(op *store.Op, at window.Instant) time.Duration {
	base, inner := op.Limit.Parts()
	if base == nil {
		return op.Result.ResetAfter
	}
	return min(op.Result.ResetAfter, kindFor(base).stays(base, at), kindFor(inner).stays(inner, at))
}

func staysItsLength(l *window.Compiled, _ window.Instant) time.Duration {
	return l.Window.Length
}

func staysItsPeriod(l *window.Compiled, at window.Instant) time.Duration {
	_, end := l.Window.PeriodBounds(at)
	return end.Sub(at)
}

// staysUntilDrained returns the time in which a bucket drains by one hit.
func staysUntilDrained(l *window.Compiled, _ window.Instant) time.Duration {
	return l.Window.Length / time.Duration(max(l.Quota, 1))
}

func staysForEver(*window.Compiled, window.Instant) time.Duration { return window.Never }
