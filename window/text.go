package window

import "github.com/weirhq/weir/internal/jsontext"

// ID returns the identity of the window: its kind and its length, or its period,
// zone and anchor. Two windows with the same ID can use each other's states.
func (w Window) ID() string {
	if int(w.Kind) < len(kinds) && kinds[w.Kind].id != nil {
		return w.Kind.String() + "/" + kinds[w.Kind].id(&w)
	}
	return w.Kind.String() + "/" + jsontext.Duration(w.Length)
}

// String returns the window as readable text, such as "sliding 1h",
// "cells 24h/1440", "day Europe/Berlin" or "bucket 1m burst 20000".
func (w Window) String() string {
	if int(w.Kind) < len(kinds) {
		return kinds[w.Kind].describe(w.Kind.String(), &w)
	}
	return describeLength(w.Kind.String(), &w)
}

func describeLength(name string, w *Window) string { return name + " " + jsontext.Duration(w.Length) }
