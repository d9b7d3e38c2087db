package window

import (
	"fmt"
	"strings"
	"time"
)

// ID is the identity of the window: two windows with one ID age hits alike, and
// read each other's states.
func (w Window) ID() string {
	if w.Kind != KindCalendar {
		return w.Kind.String() + "/" + Length(w.Length)
	}
	id := "calendar/" + w.Period.String() + "/" + w.zoneName()
	if w.Anchor > 1 {
		id += fmt.Sprintf("/%d", w.Anchor)
	}
	return id
}

// String is the window for people: "sliding 1h", "cells 24h/1440",
// "day Europe/Berlin", "bucket 1m burst 20000".
func (w Window) String() string {
	switch w.Kind {
	case KindCells:
		return fmt.Sprintf("cells %s/%d", Length(w.Length), w.cells())
	case KindBucket:
		if w.Burst > 0 {
			return fmt.Sprintf("bucket %s burst %d", Length(w.Length), w.Burst)
		}
	case KindCalendar:
		s := w.Period.String() + " " + w.zoneName()
		if w.Anchor > 1 {
			s += fmt.Sprintf(" from day %d", w.Anchor)
		}
		return s
	}
	return w.Kind.String() + " " + Length(w.Length)
}

func (w *Window) zoneName() string {
	if w.Zone == nil {
		return "UTC"
	}
	return w.Zone.String()
}

// Length is d in its shortest form: 1h, not 1h0m0s.
func Length(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
