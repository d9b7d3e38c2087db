package script

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/window"
)

// Kept is all that Redis keeps for a key, as the program [Peek] answers it.
type Kept struct {
	Now     window.Instant
	State   string        // empty: the key is not there
	TTL     time.Duration // negative: none
	Members int           // in the sorted set
	Last    []string      // of them, fingerprints and scores in turn: all, or only the one used last
	Uses    map[string]string
}

// Words returns the state in words, as package window keeps it under limit, and nil for a
// key that is not there. It returns a [*StateError] for a state that it cannot
// read: package window trusts its states.
func (k *Kept) Words(key string, limit *window.Compiled) (window.State, error) {
	if k.State == "" {
		return nil, nil
	}
	s, ok := k.decode(k.State)
	if !ok || !isOf(k.State, limit) {
		return nil, k.unreadable(key)
	}
	return s, nil
}

// isOf reports whether limit keeps states such as this one, which decode can read.
func isOf(state string, limit *window.Compiled) bool {
	row := kindFor(limit)
	if state[1] == codeBan {
		if state = state[2+banHead:]; state == "" {
			return true
		}
	}
	if state[1] == codeHolding {
		n := int(binary.LittleEndian.Uint16([]byte(state[3:])))
		final := state[2+holdHead+n*holdSize:]
		holds := !row.wraps && !row.distinct && row.code != codeHeld
		return holds && state[2] == row.code && (row.code != codeCells || final == "" || areCellsOf(final, limit))
	}
	switch {
	case state[1] != row.code:
		return false
	case row.code == codeCells:
		return areCellsOf(state, limit)
	case !row.wraps:
		return true
	}
	base, inner := limit.Parts()
	first, second, _ := split(state[2:])
	return (first == "" || isOf(first, base)) && (second == "" || isOf(second, inner))
}

// maxCells is the largest number of cells in a window.
const maxCells = window.MaxEntries

// areCellsOf reports whether the window of limit can have cells of the width in state. Many
// narrow ones would fill the memory.
func areCellsOf(state string, limit *window.Compiled) bool {
	return get7(state[2:]) >= limit.Window.Length.Microseconds()/maxCells
}

func (k *Kept) unreadable(key string) error {
	return &StateError{Key: key, Head: k.State[:min(len(k.State), 2)]}
}

// version is what states of this version begin with.
const version = 1

// open returns the row and the body of a state; the row is nil when the state is
// not of this version.
func open(state string) (*kind, string) {
	if len(state) < 2 || state[0] != version {
		return nil, ""
	}
	return kindOf(state[1]), state[2:]
}

// isWrapped reports whether a state has holds or a ban around it.
func isWrapped(state string) bool {
	return len(state) >= 2 && state[0] == version && (state[1] == codeHolding || state[1] == codeBan)
}

// decode returns a state in words, and reports whether it could. A ban is around a state
// without one, holds are around that of a window, and a limit after a count has two of those.
func (k *Kept) decode(state string) (window.State, bool) {
	row, body := open(state)
	switch {
	case isWrapped(state) && state[1] == codeBan:
		return k.decodeBan(body)
	case isWrapped(state):
		return k.decodeHolding(body)
	case row == nil || !row.wraps:
		return k.decodeWindow(state)
	}
	first, second, ok := split(body)
	var base, inner window.State
	if ok && first != "" {
		base, ok = k.decodeWindow(first)
	}
	if ok && second != "" {
		inner, ok = k.decodeWindow(second)
	}
	return append(append(window.State{uint64(len(base))}, base...), inner...), ok
}

// decodeWindow is decode for the state of a window, with nothing around it.
func (k *Kept) decodeWindow(state string) (window.State, bool) {
	row, body := open(state)
	if row == nil || row.wraps {
		return nil, false
	}
	return row.decode(k, body)
}

// split returns the two states in the body of a wrapper's state.
func split(body string) (base, inner string, ok bool) {
	if len(body) < 3 {
		return "", "", false
	}
	n := int(body[0]) | int(body[1])<<8 | int(body[2])<<16
	body = body[3:]
	n = min(n, len(body))
	return body[:n], body[n:], true
}

// words returns the n numbers of 7 bytes that body consists of. Programs write none above
// 2^53.
func words(body string, n int) (window.State, bool) {
	if len(body) != 7*n {
		return nil, false
	}
	s := make(window.State, n)
	for i := range s {
		if s[i] = uint64(get7(body[7*i:])); s[i] > 1<<53 {
			return nil, false
		}
	}
	return s, true
}

const logMark = 1 << 63 // in a sliding state in words: groups larger than one

func decodeSliding(_ *Kept, body string) (window.State, bool) {
	const head = 2 + 5*7
	if len(body) < head {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16([]byte(body)))
	fixed, whole := words(body[2:head], 5)
	dates, ok := words(body[head:], n-1)
	if !ok || !whole {
		return nil, false
	}
	newest, fill, group, excess := fixed[0], fixed[2], fixed[3], fixed[4]
	var s window.State
	if group > 1 || excess > 0 {
		s = window.State{group | logMark, fill, excess}
	}
	return append(append(s, dates...), newest), true
}

func decodeCells(_ *Kept, body string) (window.State, bool) {
	const head, cell = 4*7 + 2, 2 + 7
	if len(body) < head || (len(body)-head)%cell != 0 {
		return nil, false
	}
	fixed, ok := words(body[:28], 4)
	if !ok {
		return nil, false
	}
	width, index, sum, newest := fixed[0], fixed[1], fixed[2], fixed[3]
	if width == 0 || index > uint64(window.MaxHits)/width { // the cell begins after all instants
		return nil, false
	}
	// A cell has its distance from the newest; those between are zero.
	distance := func(at string) int { return int(uint16(index) - binary.LittleEndian.Uint16([]byte(at))) }
	oldest := 0
	if len(body) > head {
		oldest = distance(body[head:])
	}
	s := make(window.State, 3+oldest+1)
	s[0], s[1], s[2], s[3+oldest] = width, index, sum, newest
	for rest := body[head:]; rest != ""; rest = rest[cell:] {
		back := distance(rest)
		if back == 0 || back > oldest {
			return nil, false
		}
		s[3+oldest-back] = uint64(get7(rest[2:]))
	}
	return s, true
}

func decodePeriod(_ *Kept, body string) (window.State, bool) { return words(body, 2) }

func decodeCalendar(_ *Kept, body string) (window.State, bool) {
	if len(body) == 3*7 {
		return words(body, 3)
	}
	return words(body, 2)
}

func decodeBucket(_ *Kept, body string) (window.State, bool) {
	s, ok := words(body, 3)
	if ok && s[1] == 0 {
		s = s[:1]
	}
	return s, ok
}

// epoch is what the scores of a sorted set count from, 2020-01-01, in µs.
const epoch = 1_577_836_800_000_000

const usesShift = 53 // in a state in words a member's uses are above its date

const membersNear = 2 // of a state that has its members itself

// decodeMembers decodes those of a sliding window, whose mark is the instant up to which members have left.
func decodeMembers(k *Kept, body string) (window.State, bool) {
	left := int64(-1)
	if len(body) >= 7 {
		left = get7(body)
	}
	return k.decodeMembersAfter(left, body)
}

// decodeMembersAfter leaves out the members of the sorted set up to the instant left.
func (k *Kept) decodeMembersAfter(left int64, body string) (window.State, bool) {
	const head, record = 7 + 1, 16 + 7 + 2
	s := window.State{}
	switch {
	case len(body) < head:
		return nil, false
	case body[7] < membersNear:
		return s, true // the state of an earlier release, which counts as none
	case (len(body)-head)%record != 0:
		return nil, false
	}
	for rest := body[head:]; rest != ""; rest = rest[record:] {
		b := []byte(rest[:record])
		uses := uint64(binary.LittleEndian.Uint16(b[23:]))
		s = append(s, binary.LittleEndian.Uint64(b), uint64(get7(rest[16:]))|uses<<usesShift)
	}
	if body[7] == membersNear {
		return s, true // a sorted set without its state, which was evicted
	}
	for m := range slices.Chunk(k.Last, 2) {
		score, err := strconv.ParseFloat(m[1], 64)
		if err != nil || len(m[0]) != 16 {
			return nil, false
		}
		uses := uint64(1)
		if n, err := strconv.ParseUint(k.Uses[m[0]], 10, 11); err == nil {
			uses = n
		}
		if date := int64(math.Floor(score)) + epoch; date > left {
			s = append(s, binary.LittleEndian.Uint64([]byte(m[0])), uint64(date)|uses<<usesShift)
		}
	}
	if read := len(k.Last) / 2; len(s) > 0 && read < k.Members { // the last one stands for all
		s = append(s, slices.Repeat(s[len(s)-2:], k.Members-read)...)
	}
	return s, true
}

// decodeMembersOfPeriod puts the period's mark before the members.
func decodeMembersOfPeriod(k *Kept, body string) (window.State, bool) {
	s, ok := k.decodeMembersAfter(-1, body)
	if !ok {
		return nil, false
	}
	return slices.Insert(s, 0, uint64(get7(body))), true
}

// The states with holds and bans, in words as package window keeps them.

const (
	heldMark = 3 << 62 // the first word of a state with holds, with their number
	banMark  = 7 << 61 // the first word of a state with a ban, with the strikes
	refunded = 1 << 7  // beside the strikes: the window was refunded since
	keepFlag = 1 << 63 // of a hold's hits: they are kept when it ends

	wideFlag = 1 << 62            // of a place that has three words
	idMix    = 0x9e3779b97f4a7c15 // makes 64 bits of an id

	banHead   = 1 + 7 + 7
	holdHead  = 1 + 2 + 3*7
	holdSize  = 7 + 7 + 12 + 1 + 7
	placeSize = 7 + 12 + 6
	pairSize  = 7 + 7
)

func (k *Kept) decodeBan(body string) (window.State, bool) {
	if len(body) < banHead {
		return nil, false
	}
	s, ok := words(body[1:banHead], 2)
	if !ok {
		return nil, false
	}
	s = append(window.State{uint64(body[0]) | banMark}, s...)
	if len(body) == banHead {
		return s, true
	}
	if isWrapped(body[banHead:]) && body[banHead+1] == codeBan {
		return nil, false
	}
	in, ok := k.decode(body[banHead:])
	return append(s, in...), ok
}

func (k *Kept) decodeHolding(body string) (window.State, bool) {
	if len(body) < holdHead {
		return nil, false
	}
	code, n := body[0], int(binary.LittleEndian.Uint16([]byte(body[1:])))
	s, ok := words(body[3:holdHead], 3)
	s = append(window.State{uint64(n) | heldMark}, s...)
	list := body[holdHead:]
	if !ok || len(list) < n*holdSize {
		return nil, false
	}
	list, base := list[:n*holdSize], list[n*holdSize:]
	final, ok := k.decodeFinal(code, base)
	s = append(s, final...)
	for ; list != ""; list = list[holdSize:] {
		high, low := idWords(list[14:26])
		times, valid := words(list[:14], 2)
		n, hit := words(list[27:holdSize], 1)
		if !valid || !hit {
			return nil, false
		}
		hits := n[0]
		if list[26] == 1 {
			hits |= keepFlag
		}
		s = append(s, times[0], times[1], hits, high, low)
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
		s, ok := k.decodeWindow(base)
		return s, ok && base[1] == code
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
	if strikes := s[0] &^ (banMark | refunded); strikes > 0 {
		p.line("strikes  %d", strikes)
		p.line("banned   until %s", p.ago(window.Instant(s[1])))
	} else {
		p.line("complete since %s", p.ago(window.Instant(s[1])))
	}
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
