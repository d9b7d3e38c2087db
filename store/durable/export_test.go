package durable

import "github.com/weirhq/weir/window"

// WithDisk makes the store write to d.
func WithDisk(d *Disk) Option { return func(c *config) { c.disk = d } }

// Resumed is resumed.
func Resumed(last window.Instant, then int64, thenBoot uint64, now int64, boot uint64, wall window.Instant) window.Instant {
	return resumed(last, then, thenBoot, now, boot, wall)
}
