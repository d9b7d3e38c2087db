package script

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// ErrNoKey is the error of an inspection of a key that is not there.
var ErrNoKey = errors.New("weir: no such key")

// Describe returns a page for people about what is kept for key. A state does not
// have the length of its window, so the page shows hits that have left the window
// until the key is used again or expires.
func (k *Kept) Describe(key string) (string, error) {
	if k.State == "" {
		return "", About(ErrNoKey, key)
	}
	p := &page{now: k.Now}
	p.line("key      %s", key)
	if isSecret(k.State) {
		p.line("kind     secret under which receipts are sealed, version %d", version)
		return p.text.String(), nil
	}
	lives := "forever, which is an error"
	if k.TTL >= 0 {
		lives = "for " + k.TTL.String()
	}
	p.line("lives    %s", lives)
	p.line("now      %s", moment(k.Now))
	if !k.describe(p, k.State) {
		return "", k.unreadable(key)
	}
	return p.text.String(), nil
}

// page is a text that is being written.
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

// moment returns an instant for people, to the microsecond.
func moment(i window.Instant) string { return i.Time().Format("2006-01-02 15:04:05.000000Z") }

// ago returns an instant and how far it is from now.
func (p *page) ago(at window.Instant) string {
	if at > p.now {
		return fmt.Sprintf("%s, in %v", moment(at), at.Sub(p.now))
	}
	return fmt.Sprintf("%s, %v ago", moment(at), p.now.Sub(at))
}

// describe writes the lines of a state, and reports whether it can be read.
func (k *Kept) describe(p *page, state string) bool {
	if isWrapped(state) {
		if p.line("size     %d bytes", len(state)); state[1] == codeBan {
			return k.describeBan(p, state[2:])
		}
		return k.describeHolding(p, state[2:])
	}
	s, ok := k.decode(state)
	if !ok {
		return false
	}
	row, body := open(state)
	p.line("kind     %s, version %d, %d bytes", row.name, version, len(state))
	if row.wraps {
		return k.describeParts(p, body)
	}
	row.describe(p, s)
	return true
}

// describeParts writes the two states of a limit after a count.
func (k *Kept) describeParts(p *page, body string) bool {
	base, inner, _ := split(body)
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

// period and membersOf return what writes a state whose first word is the instant at which
// its period began or ends.
func period(mark string) func(*page, window.State) {
	return func(p *page, s window.State) {
		p.line("hits     %d", s[1])
		p.line("%-8s %s", mark, p.ago(window.Instant(s[0])))
		if len(s) > 2 {
			p.line("before   %d hits in the period before", s[2])
		}
	}
}

func membersOf(mark string) func(*page, window.State) {
	return func(p *page, s window.State) {
		p.line("%-8s %s", mark, p.ago(window.Instant(s[0])))
		p.members(s[1:])
	}
}

func (p *page) bucket(s window.State) {
	p.line("booked   until %s", p.ago(window.Instant(s[0])))
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

func (p *page) members(s window.State) {
	var dropped window.State // their number, and the date of the newest
	if len(s) > 1 && s[1]>>usesShift == 0 {
		dropped, s = s[:2], s[2:]
	}
	p.line("members  %d, by their fingerprints", len(s)/2)
	if dropped != nil {
		p.line("older    %d members past the quota, the last one used %s", dropped[0], p.ago(window.Instant(dropped[1])))
	}
	p.entries(len(s)/2, func(i int) {
		date, uses := s[2*i+1]&(1<<usesShift-1), s[2*i+1]>>usesShift
		p.line("  %016x  %s, %d times", s[2*i], p.ago(window.Instant(date)), uses)
	})
}
