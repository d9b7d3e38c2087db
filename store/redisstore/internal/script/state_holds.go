package script

import (
	"encoding/binary"

	"github.com/weirhq/weir/window"
)

// The states with holds and bans, in words as package window keeps them.

const (
	heldMark = 3 << 62 // the first word of a state with holds, with their number
	banMark  = 7 << 61 // the first word of a state with a ban, with the strikes
	keepFlag = 1 << 63 // of a hold's hits: they are kept when it ends

	wideFlag = 1 << 62            // of a place that has three words
	idMix    = 0x9e3779b97f4a7c15 // makes 64 bits of an id

	banHead   = 1 + 7 + 7
	holdHead  = 1 + 2 + 3*7
	holdSize  = 7 + 7 + 12 + 1 + 7
	placeSize = 7 + 12 + 6
	pairSize  = 7 + 7
)

// decodeAround returns a state with holds or a ban in words, and reports whether
// it could.
func (k *Kept) decodeAround(code byte, body string) (window.State, bool) {
	if code == codeBan {
		return k.decodeBan(body)
	}
	return k.decodeHolding(body)
}

func (k *Kept) decodeBan(body string) (window.State, bool) {
	if len(body) < banHead {
		return nil, false
	}
	s, _ := words(body[1:banHead], 2)
	s = append(window.State{uint64(body[0]) | banMark}, s...)
	if len(body) == banHead {
		return s, true
	}
	in, ok := k.decode(body[banHead:])
	return append(s, in...), ok
}

func (k *Kept) decodeHolding(body string) (window.State, bool) {
	if len(body) < holdHead {
		return nil, false
	}
	code, n := body[0], int(binary.LittleEndian.Uint16([]byte(body[1:])))
	s, _ := words(body[3:holdHead], 3)
	s = append(window.State{uint64(n) | heldMark}, s...)
	list := body[holdHead:]
	if len(list) < n*holdSize {
		return nil, false
	}
	list, base := list[:n*holdSize], list[n*holdSize:]
	final, ok := k.decodeFinal(code, base)
	s = append(s, final...)
	for ; list != ""; list = list[holdSize:] {
		high, low := idWords(list[14:26])
		hits := uint64(get7(list[27:]))
		if list[26] == 1 {
			hits |= keepFlag
		}
		s = append(s, uint64(get7(list)), uint64(get7(list[7:])), hits, high, low)
	}
	return s, ok
}

// decodeFinal returns the hits in a state with holds that are final: in a sliding
// window pairs, in the other kinds a state of the kind.
func (k *Kept) decodeFinal(code byte, base string) (window.State, bool) {
	switch {
	case base == "":
		return nil, true
	case code != codeSliding:
		return k.decode(base)
	case len(base)%pairSize != 0:
		return nil, false
	}
	return words(base, len(base)/7)
}

func idWords(id string) (high, low uint64) {
	return binary.BigEndian.Uint64([]byte(id[:8])), uint64(binary.BigEndian.Uint32([]byte(id[8:12])))
}

func decodeEver(_ *Kept, body string) (window.State, bool) { return words(body, 1) }

func decodeHeld(_ *Kept, body string) (window.State, bool) {
	if len(body) < 7 || (len(body)-7)%placeSize != 0 {
		return nil, false
	}
	s := window.State{}
	for list := body[7:]; list != ""; list = list[placeSize:] {
		high, low := idWords(list[7:19])
		hits := uint64(get7(list[19:placeSize] + "\x00"))
		s = append(s, uint64(get7(list))|wideFlag, high^low*idMix, hits)
	}
	return s, true
}

func (p *page) ever(s window.State) { p.line("hits     %d", s[0]) }

func (p *page) held(s window.State) {
	p.line("places   %d", len(s)/3)
	p.entries(len(s)/3, func(i int) {
		place := s[3*i:]
		p.line("  %8d  ends %s", place[2], p.ago(window.Instant(place[0]&^wideFlag)))
	})
}

// describeBan writes the lines of a state with a ban.
func (k *Kept) describeBan(p *page, body string) bool {
	s, ok := k.decodeBan(body)
	if !ok {
		return false
	}
	p.line("strikes  %d", s[0]&^banMark)
	p.line("banned   until %s", p.ago(window.Instant(s[1])))
	return len(body) == banHead || k.describe(p, body[banHead:])
}

// describeHolding writes the lines of a state with holds.
func (k *Kept) describeHolding(p *page, body string) bool {
	s, ok := k.decodeHolding(body)
	if !ok {
		return false
	}
	row := kindOf(body[0])
	if row == nil {
		return false
	}
	n := int(s[0] &^ heldMark)
	p.line("kind     %s, version %d, with holds", row.name, version)
	p.line("holds    %d, of %d hits", n, s[1])
	list := s[len(s)-5*n:]
	p.entries(n, func(i int) {
		h := list[5*i:]
		then := "then released"
		if h[2]&keepFlag != 0 {
			then = "then kept"
		}
		p.line("  %8d  taken %s, ends %s, %s, hold %016x%08x",
			h[2]&^keepFlag, p.ago(window.Instant(h[1])), p.ago(window.Instant(h[0])), then, h[3], h[4])
	})
	final := s[4 : len(s)-5*n]
	switch {
	case len(final) == 0:
		p.line("final    none")
	case row.code != codeSliding:
		p.line("final:")
		row.describe(p, final)
	default:
		p.line("final    %d hits", final[0])
		if final[1] > 0 {
			p.line("older    %d hits past the quota", final[1])
		}
		pairs := final[2:]
		p.entries(len(pairs)/2, func(i int) {
			p.line("  %8d  %s", pairs[2*i+1], p.ago(window.Instant(pairs[2*i])))
		})
	}
	return true
}
