package script

import (
	"fmt"
	"math/bits"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Fits returns an error for an op whose limit the programs cannot compute: one
// that a program made without [window.Compile], or that is for counting in
// memory only.
func Fits(op *store.Op) error {
	l := op.Limit
	if l == nil {
		return fmt.Errorf("rule %q: no limit", op.Space.Name())
	}
	base, inner := l.Parts()
	if base != nil {
		if err := fits(op, base); err != nil {
			return err
		}
	}
	return fits(op, inner)
}

func fits(op *store.Op, l *window.Compiled) error {
	limit := l.Limit
	switch {
	case limit == nil:
		return fmt.Errorf("rule %q: the limit was not made by window.Compile", op.Space.Name())
	case limit.Window.Kind == window.KindSliding && limit.Quota == window.Unlimited:
		return fmt.Errorf("rule %q: a sliding window without a quota", op.Space.Name())
	case limit.Window.Kind == window.KindBucket:
		_, micros, _ := rate(limit)
		if hi, lo := bits.Mul64(uint64(l.Capacity()), uint64(micros)); hi > 0 || lo > uint64(window.MaxHits) {
			return fmt.Errorf("rule %q: a bucket of %d hits at %d per %v has products above 2^53: only a store in memory counts it",
				op.Space.Name(), l.Capacity(), limit.Quota, limit.Window.Length)
		}
	}
	return nil
}
