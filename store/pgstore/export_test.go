package pgstore

import (
	"context"

	"github.com/weirhq/weir/window"
)

// OpenAt opens a store whose calls are decided at the instants of clock, and that keeps expired rows.
func OpenAt(ctx context.Context, url string, clock func() window.Instant) (*Store, error) {
	c, err := Parse(url)
	if err != nil {
		return nil, err
	}
	s := newStore(&c)
	s.clock, s.still = clock, true
	return s, s.open(ctx)
}
