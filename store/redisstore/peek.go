package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// kept is all that Redis has for a key.
type kept struct {
	now   window.Instant
	state string
	ttl   time.Duration // negative: none
	last  []string      // of the sorted set, fingerprints and scores in turn
	uses  map[string]string
}

var peekScript = peekProgram()

func peekProgram() *script {
	var j joiner
	j.file("peek")
	return newScript(j.String())
}

// fetch reads all that is kept for key.
func (p *program) fetch(ctx context.Context, c rueidis.Client, key string) (kept, error) {
	var k kept
	keys := []string{key, key + membersSuffix, key + usesSuffix}
	reply := c.Do(ctx, c.B().Evalsha().Sha1(peekScript.sha).Numkeys(3).Key(keys...).Build())
	if e, ok := rueidis.IsRedisErr(reply.Error()); ok && e.IsNoScript() {
		reply = c.Do(ctx, c.B().Eval().Script(peekScript.text).Numkeys(3).Key(keys...).Build())
	}
	all, err := reply.ToArray()
	if err != nil {
		return k, fmt.Errorf("key %q: %w", key, err)
	}
	if len(all) != 5 {
		return k, fmt.Errorf("key %q: the script answers %d values", key, len(all))
	}
	now, err := all[0].AsInt64()
	if err != nil {
		return k, err
	}
	k.now = window.Instant(now)
	if k.state, err = all[1].ToString(); err != nil && !rueidis.IsRedisNil(err) {
		return k, err
	}
	ms, err := all[2].AsInt64()
	if err != nil {
		return k, err
	}
	k.ttl = time.Duration(ms) * time.Millisecond
	if k.last, err = all[3].AsStrSlice(); err != nil {
		return k, err
	}
	k.uses, err = all[4].AsStrMap()
	return k, err
}

func (p *program) peek(ctx context.Context, c rueidis.Client, op *store.Op) (window.State, window.Instant, error) {
	key := string(p.names.append(nil, op))
	k, err := p.fetch(ctx, c, key)
	if err != nil || k.state == "" {
		return nil, k.now, err
	}
	s, ok := k.decode(k.state)
	if !ok {
		return nil, k.now, &StateError{Key: key, Head: k.state[:min(len(k.state), 2)]}
	}
	return s, k.now, nil
}

func (p *program) forget(ctx context.Context, c rueidis.Client, op *store.Op) error {
	key := string(p.names.append(nil, op))
	keys := []string{key}
	if op.Limit.Distinct() {
		keys = append(keys, key+membersSuffix, key+usesSuffix)
	}
	return c.Do(ctx, c.B().Del().Key(keys...).Build()).Error()
}

// version is what states of this version begin with.
const version = 1

// decode is a packed state in words, as package window describes them. It is
// false when state is not one of this version's.
func (k *kept) decode(state string) (_ window.State, ok bool) {
	if len(state) < 2 || state[0] != version {
		return nil, false
	}
	code, body := state[1], state[2:]
	switch code {
	case codeSliding:
		return decodeSliding(body)
	case codeCells:
		return decodeCells(body)
	case codeFixed, codeCalendar:
		return words(body, 2)
	case codeBucket:
		s, ok := words(body, 3)
		if ok && s[1] == 0 {
			s = s[:1]
		}
		return s, ok
	case codeAfter:
		return k.decodeAfter(body)
	case codeMembers, codeMembersFixed, codeMembersCalendar:
		return k.decodeMembers(code, body)
	}
	return nil, false
}

// words is n numbers of 7 bytes, which are all of body.
func words(body string, n int) (window.State, bool) {
	if len(body) != 7*n {
		return nil, false
	}
	s := make(window.State, n)
	for i := range s {
		s[i] = uint64(get7(body[7*i:]))
	}
	return s, true
}

const logMark = 1 << 63 // in a sliding state in words: groups larger than one

func decodeSliding(body string) (window.State, bool) {
	const head = 2 + 5*7
	if len(body) < head {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16([]byte(body)))
	fixed, _ := words(body[2:head], 5)
	dates, ok := words(body[head:], n-1)
	if !ok {
		return nil, false
	}
	newest, fill, group, excess := fixed[0], fixed[2], fixed[3], fixed[4]
	var s window.State
	if group > 1 || excess > 0 {
		s = window.State{group | logMark, fill, excess}
	}
	return append(append(s, dates...), newest), true
}

func decodeCells(body string) (window.State, bool) {
	const head, cell = 4*7 + 2, 2 + 7
	if len(body) < head || (len(body)-head)%cell != 0 {
		return nil, false
	}
	fixed, _ := words(body[:28], 4)
	width, index, sum, newest := fixed[0], fixed[1], fixed[2], fixed[3]
	// A cell says how far behind the newest it is; those between are zero.
	behind := func(at string) int { return int(uint16(index) - binary.LittleEndian.Uint16([]byte(at))) }
	oldest := 0
	if len(body) > head {
		oldest = behind(body[head:])
	}
	s := make(window.State, 3+oldest+1)
	s[0], s[1], s[2], s[3+oldest] = width, index, sum, newest
	for rest := body[head:]; rest != ""; rest = rest[cell:] {
		back := behind(rest)
		if back == 0 || back > oldest {
			return nil, false
		}
		s[3+oldest-back] = uint64(get7(rest[2:]))
	}
	return s, true
}

func (k *kept) decodeAfter(body string) (window.State, bool) {
	if len(body) < 3 {
		return nil, false
	}
	first, second := splitAfter(body)
	var base, inner window.State
	ok := true
	if first != "" {
		base, ok = k.decode(first)
	}
	if ok && second != "" {
		inner, ok = k.decode(second)
	}
	return append(append(window.State{uint64(len(base))}, base...), inner...), ok
}

// splitAfter is the two states in the body of one.
func splitAfter(body string) (base, inner string) {
	n := int(body[0]) | int(body[1])<<8 | int(body[2])<<16
	body = body[3:]
	n = min(n, len(body))
	return body[:n], body[n:]
}

// epoch is what the scores of a sorted set count from, 2020-01-01, in µs.
const epoch = 1_577_836_800_000_000

const usesShift = 53 // in a state in words a member's uses stand above its date

func (k *kept) decodeMembers(code byte, body string) (window.State, bool) {
	const head, record = 7 + 1, 8 + 7 + 2
	if len(body) < head || (len(body)-head)%record != 0 {
		return nil, false
	}
	var s window.State
	if code != codeMembers {
		s = append(s, uint64(get7(body)))
	}
	for rest := body[head:]; rest != ""; rest = rest[record:] {
		b := []byte(rest[:record])
		uses := uint64(binary.LittleEndian.Uint16(b[15:]))
		s = append(s, binary.LittleEndian.Uint64(b), uint64(get7(rest[8:]))|uses<<usesShift)
	}
	if body[7] == 0 {
		return s, true // a sorted set beside it is left over: its state was evicted
	}
	for m := range slices.Chunk(k.last, 2) {
		score, err := strconv.ParseFloat(m[1], 64)
		if err != nil || len(m[0]) != 8 {
			return nil, false
		}
		uses := uint64(1)
		if n, err := strconv.ParseUint(k.uses[m[0]], 10, 11); err == nil {
			uses = n
		}
		date := uint64(int64(math.Floor(score)) + epoch)
		s = append(s, binary.LittleEndian.Uint64([]byte(m[0])), date|uses<<usesShift)
	}
	return s, true
}
