package window

import (
	"strings"
	"time"
)

// ID returns the identity of the window: its kind and its length, or its period,
// zone and anchor. Two windows with the same ID can use each other's states.
func (w Window) ID() string {
	if int(w.Kind) < len(kinds) && kinds[w.Kind].id != nil {
		return w.Kind.String() + "/" + kinds[w.Kind].id(&w)
	}
	return w.Kind.String() + "/" + Length(w.Length)
}

// String returns the window as readable text, such as "sliding 1h",
// "cells 24h/1440", "day Europe/Berlin" or "bucket 1m burst 20000".
func (w Window) String() string {
	if int(w.Kind) < len(kinds) {
		return kinds[w.Kind].describe(w.Kind.String(), &w)
	}
	return describeLength(w.Kind.String(), &w)
}

func describeLength(name string, w *Window) string { return name + " " + Length(w.Length) }

// Length returns d as text like [time.Duration.String], without zero minutes and
// seconds at the end: 1h, not 1h0m0s.
func Length(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
