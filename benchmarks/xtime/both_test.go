package xtime_test

import (
	"context"
	"testing"
	"time"

	xtime "golang.org/x/time/rate"

	weir "github.com/weirhq/weir/compat/rate"
)

// A limiter has the methods of the limiters of both packages, whose limits are numbers
// here.
type limiter interface {
	Limit() float64
	Burst() int
	Tokens() float64
	TokensAt(t time.Time) float64
	Allow() bool
	AllowN(t time.Time, n int) bool
	Reserve() reservation
	ReserveN(t time.Time, n int) reservation
	Wait(ctx context.Context) error
	WaitN(ctx context.Context, n int) error
	SetLimit(limit float64)
	SetLimitAt(t time.Time, limit float64)
	SetBurst(burst int)
	SetBurstAt(t time.Time, burst int)
}

type reservation interface {
	OK() bool
	Delay() time.Duration
	DelayFrom(t time.Time) time.Duration
	Cancel()
	CancelAt(t time.Time)
}

type ofWeir struct{ *weir.Limiter }

func (l ofWeir) Limit() float64                          { return float64(l.Limiter.Limit()) }
func (l ofWeir) Reserve() reservation                    { return l.Limiter.Reserve() }
func (l ofWeir) ReserveN(t time.Time, n int) reservation { return l.Limiter.ReserveN(t, n) }
func (l ofWeir) SetLimit(limit float64)                  { l.Limiter.SetLimit(weir.Limit(limit)) }
func (l ofWeir) SetLimitAt(t time.Time, limit float64)   { l.Limiter.SetLimitAt(t, weir.Limit(limit)) }

type ofXTime struct{ *xtime.Limiter }

func (l ofXTime) Limit() float64                          { return float64(l.Limiter.Limit()) }
func (l ofXTime) Reserve() reservation                    { return l.Limiter.Reserve() }
func (l ofXTime) ReserveN(t time.Time, n int) reservation { return l.Limiter.ReserveN(t, n) }
func (l ofXTime) SetLimit(limit float64)                  { l.Limiter.SetLimit(xtime.Limit(limit)) }
func (l ofXTime) SetLimitAt(t time.Time, limit float64) {
	l.Limiter.SetLimitAt(t, xtime.Limit(limit))
}

func newWeir(limit float64, burst int) limiter {
	return ofWeir{weir.NewLimiter(weir.Limit(limit), burst)}
}

func newXTime(limit float64, burst int) limiter {
	return ofXTime{xtime.NewLimiter(xtime.Limit(limit), burst)}
}

const inf = float64(xtime.Inf)

// both runs a case on both packages.
func both(t *testing.T, f func(t *testing.T, create func(limit float64, burst int) limiter)) {
	t.Parallel()
	t.Run("weir", func(t *testing.T) { f(t, newWeir) })
	t.Run("xtime", func(t *testing.T) { f(t, newXTime) })
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a number of tenths of a second after the start.
func at(tenths float64) time.Time {
	return start.Add(time.Duration(tenths * float64(time.Second/10)))
}
