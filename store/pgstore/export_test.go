package pgstore

import (
	"context"
	"time"

	"github.com/weirhq/weir/window"
)

// OpenAt opens a store whose calls are decided at the instants of clock, and that keeps expired rows.
func OpenAt(ctx context.Context, url string, clock func() window.Instant) (*Store, error) {
	c, err := Parse(url)
	if err != nil {
		return nil, err
	}
	s := newStore(&c)
	s.clock, s.sweeper.margin = clock, 0
	err = s.open(ctx)
	return s, err
}

// OpenSwept opens a store that deletes rows so long after they have expired.
func OpenSwept(ctx context.Context, url string, margin time.Duration) (*Store, error) {
	c, err := Parse(url)
	if err != nil {
		return nil, err
	}
	s := newStore(&c)
	s.sweeper.margin = margin
	err = s.open(ctx)
	return s, err
}

// WritersFor is how long [Store.Keys] waits for transactions at most.
const WritersFor = writersFor

// Key is the primary key of a row.
type Key = key

// EncodeState and DecodeState are the form of a state in the database.
var EncodeState, DecodeState = encode, decode
