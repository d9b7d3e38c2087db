package conn_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/window"
)

func TestServerClock(t *testing.T) {
	t.Parallel()
	const ms = window.Instant(1000)
	var c conn.ServerClock
	for _, step := range []struct {
		server window.Instant
		now    time.Duration
		want   window.Instant // at the same time
		why    string
	}{
		{500 * ms, 0, 500 * ms, "the first answer"},
		{508 * ms, 10 * time.Millisecond, 510 * ms, "one that took longer says less"},
		{523 * ms, 20 * time.Millisecond, 523 * ms, "one that came quicker says more"},
		{503 * ms, 30 * time.Millisecond, 533 * ms, "set back: not believed yet"},
		{10503 * ms, 10030 * time.Millisecond, 10533 * ms, "one slow answer after 10 s: not believed yet"},
		{20504 * ms, 20031 * time.Millisecond, 20504 * ms, "not contradicted in 10 s more: believed"},
		{99999 * ms, 20032 * time.Millisecond, 99999 * ms, "set forward: believed at once"},
	} {
		c.Learn(step.server, step.now)
		if got := c.At(step.now); got != step.want {
			t.Errorf("%s: got %d, want %d", step.why, got, step.want)
		}
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"123456789": 0x31c3, "foo": 12182, "{foo}bar": 12182, "x{foo}{bar}": 12182, "": 0,
		"{}foo": 9500, "foo{": conn.SlotOf([]byte("foo{")), "{{foo}}": conn.SlotOf([]byte("{foo")),
	} {
		if got := conn.SlotOf([]byte(key)); got != want {
			t.Errorf("slot of %q: got %d, want %d", key, got, want)
		}
	}
}
