package export

import (
	"context"
	"time"
)

// Pace lets a store rest for as long as it was used, so that decisions do not wait. The zero value is ready.
type Pace struct {
	owed time.Duration // for which the store was used without a rest
}

// Rest notes that the store was used, and waits now and then.
func (p *Pace) Rest(ctx context.Context, used time.Duration) error {
	const least = 5 * time.Millisecond
	if p.owed += used; p.owed < least {
		return ctx.Err()
	}
	t := time.NewTimer(p.owed)
	defer t.Stop()
	p.owed = 0
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
