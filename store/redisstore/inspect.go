package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/window"
)

// ErrNoKey answers an inspection of a key that is not there.
var ErrNoKey = errors.New("weir: no such key")

// Inspect tells in words what is kept under the name of a key, as Redis shows
// it: for people who look into a store, not for programs. A state does not know
// the length of its window, so what has left the window is still shown, until
// the key is used again or expires.
func (s *Store) Inspect(ctx context.Context, key string) (text string, err error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	within, cancel := s.within(ctx)
	defer cancel()
	_, err = s.servers.client(within, slotOf([]byte(key)), func(c rueidis.Client) (now window.Instant, err error) {
		k, err := s.program.fetch(within, c, key)
		if err == nil {
			text, err = k.inWords(key)
		}
		return k.now, err
	})
	return text, err
}

// inWords is a page about a key.
func (k *kept) inWords(key string) (string, error) {
	if k.state == "" {
		return "", fmt.Errorf("key %q: %w", key, ErrNoKey)
	}
	p := &page{now: k.now}
	p.line("key      %s", key)
	lives := "for ever, which is a fault"
	if k.ttl >= 0 {
		lives = "for " + k.ttl.String()
	}
	p.line("lives    %s", lives)
	p.line("now      %s", moment(k.now))
	if !k.describe(p, k.state) {
		return "", &StateError{Key: key, Head: k.state[:min(len(k.state), 2)]}
	}
	return p.text.String(), nil
}

// page is a text in the making.
type page struct {
	text   strings.Builder
	indent string
	now    window.Instant
}

func (p *page) line(format string, args ...any) {
	p.text.WriteString(p.indent)
	fmt.Fprintf(&p.text, format, args...)
	p.text.WriteByte('\n')
}

// entries writes n lines, of many only the last: those are the newest.
func (p *page) entries(n int, write func(i int)) {
	const most = 20
	if n > most {
		p.line("  … %d older", n-most)
	}
	for i := max(0, n-most); i < n; i++ {
		write(i)
	}
}

// moment is an instant for people, to the microsecond.
func moment(i window.Instant) string { return i.Time().Format("2006-01-02 15:04:05.000000Z") }

// ago says where at is from now.
func (p *page) ago(at window.Instant) string {
	if at > p.now {
		return fmt.Sprintf("%s, in %v", moment(at), at.Sub(p.now))
	}
	return fmt.Sprintf("%s, %v ago", moment(at), p.now.Sub(at))
}

// describe writes what a state says. It is false when the state cannot be read.
func (k *kept) describe(p *page, state string) bool {
	s, ok := k.decode(state)
	if !ok {
		return false
	}
	code := state[1]
	p.line("kind     %s, version %d, %d bytes", kindOf(code).name, state[0], len(state))
	switch code {
	case codeSliding:
		p.sliding(s)
	case codeCells:
		p.cells(s)
	case codeFixed:
		p.line("hits     %d", s[1])
		p.line("began    %s", p.ago(window.Instant(s[0])))
	case codeCalendar:
		p.line("hits     %d", s[1])
		p.line("ends     %s", p.ago(window.Instant(s[0])))
	case codeBucket:
		p.line("booked   until %s", p.ago(window.Instant(s[0])))
	case codeAfter:
		return k.after(p, state[2:])
	default:
		p.members(code, s)
	}
	return true
}

func (p *page) sliding(s window.State) {
	group, fill, excess := uint64(1), uint64(1), uint64(0)
	if s[0]&logMark != 0 {
		group, fill, excess = s[0]&^logMark, s[1], s[2]
		s = s[3:]
	}
	last := len(s) - 1
	p.line("hits     %d, in groups of %d", uint64(last)*group+fill, group)
	if excess > 0 {
		p.line("older    %d hits past the quota", excess)
	}
	p.entries(len(s), func(i int) {
		n := group
		if i == last {
			n = fill
		}
		p.line("  %8d  %s", n, p.ago(window.Instant(s[i])))
	})
}

func (p *page) cells(s window.State) {
	width, newest, cells := int64(s[0]), int64(s[1]), s[3:]
	p.line("hits     %d, in cells of %v", s[2], time.Duration(width)*time.Microsecond)
	first := newest - int64(len(cells)) + 1
	p.entries(len(cells), func(i int) {
		p.line("  %8d  since %s", cells[i], p.ago(window.Instant((first+int64(i))*width)))
	})
}

func (p *page) members(code byte, s window.State) {
	if code != codeMembers {
		name := "ends"
		if code == codeMembersFixed {
			name = "began"
		}
		p.line("%-8s %s", name, p.ago(window.Instant(s[0])))
		s = s[1:]
	}
	p.line("members  %d, by their fingerprints", len(s)/2)
	p.entries(len(s)/2, func(i int) {
		date, uses := s[2*i+1]&(1<<usesShift-1), s[2*i+1]>>usesShift
		p.line("  %016x  %s, %d times", s[2*i], p.ago(window.Instant(date)), uses)
	})
}

// after describes the two states of a limit after a count.
func (k *kept) after(p *page, body string) bool {
	base, inner := splitAfter(body)
	p.indent = "  "
	defer func() { p.indent = "" }()
	for _, part := range []struct{ name, state string }{{"count", base}, {"limit", inner}} {
		if part.state == "" {
			p.line("%s: unused", part.name)
			continue
		}
		p.line("%s:", part.name)
		if !k.describe(p, part.state) {
			return false
		}
	}
	return true
}
