package koalafile

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/rule"
)

// readDict reads one line of [dicts], `name : path`, and the dict.
func (p *pass) readDict(s piece) {
	name, path, ok := s.cut(":")
	if !ok || name.text == "" || path.text == "" {
		p.fault(s, "want a dict as name : path, such as blacklist : conf/blacklist.dat")
		return
	}
	if _, twice := p.lists[name.text]; twice {
		p.fault(name, "dict %q appears twice: want another name", name.text)
		return
	}
	p.lists[name.text] = nil
	found := nearby(p.name, path.text)
	src, err := p.read(found)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		p.fault(path, "dict %q: file %q: %v; a relative path starts at the directory of the rule file, or at the one above",
			name.text, path.text, err)
		return
	}
	list, err := rule.In(name.text, p.items(string(src), found))
	if err != nil {
		p.fault(path, "%v", err)
		return
	}
	p.lists[name.text] = list
	p.file.Lists = append(p.file.Lists, List{Name: name.text, Comment: p.here.comment})
	if absolute, err := filepath.Abs(found); err == nil {
		found = absolute
	}
	p.file.Paths = append(p.file.Paths, found)
}

// items returns the lines of a dict file, trimmed, without empty ones. koala
// compared each line as text. weir reads a line that means several addresses as
// these addresses, and skips a malformed one.
func (p *pass) items(text, file string) []string {
	items := make([]string, 0, strings.Count(text, "\n")+1)
	blocks, wrong := oddLines{pass: p, file: file, most: 1}, oddLines{pass: p, file: file, most: 10}
	for number, line := range splitLines(text) {
		item := strings.TrimSpace(line)
		if item == "" {
			continue
		}
		if severalAddresses(item) {
			if _, err := rule.Address(item); err != nil {
				wrong.add(number, line, "%v; koala compared the line as text; weir skips it", err)
				continue
			}
			blocks.add(number, line, "koala compared %q as text, which no address matched; weir reads it as addresses", item)
		}
		items = append(items, item)
	}
	blocks.more()
	wrong.more()
	return items
}

// oddLines collects warnings of one kind about lines of a dict file.
type oddLines struct {
	pass *pass
	file string
	most int // the maximum number that is shown
	seen int
	last int // the index of the last warning
}

func (o *oddLines) add(number int, line, format string, args ...any) {
	if o.seen++; o.seen > o.most {
		return
	}
	// The copy of the line lets the dict's text be freed.
	here := pass{name: o.file, here: entry{number: number, text: strings.Clone(line)}}
	o.last = len(o.pass.warnings)
	o.pass.warnings = append(o.pass.warnings, here.note(here.here.piece(), format, args...))
}

// more adds to the last warning how many lines were not shown.
func (o *oddLines) more() {
	if more := o.seen - o.most; more > 0 {
		o.pass.warnings[o.last].Problem += fmt.Sprintf(" (and %d more like it)", more)
	}
}

// severalAddresses reports whether text means more than one IP address: a CIDR
// block, a range, or an IPv4 address with a *.
func severalAddresses(text string) bool {
	if strings.IndexByte(text, '*') >= 0 {
		return dotted(text, "0123456789.*")
	}
	i := strings.IndexAny(text, "/-")
	if i < 0 {
		return false
	}
	head, tail := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	if text[i] == '/' {
		return isAddress(head) && tail != "" && strings.Trim(tail, "0123456789") == ""
	}
	return meantAsAddress(head) && meantAsAddress(tail)
}

// meantAsAddress reports whether text is an address or resembles one, such as 10.0.0.256.
func meantAsAddress(text string) bool { return isAddress(text) || dotted(text, "0123456789.") }

// dotted reports whether text has four parts with dots between, all made of
// signs.
func dotted(text, signs string) bool {
	return strings.Count(text, ".") == 3 && strings.Trim(text, signs) == ""
}

func isAddress(text string) bool {
	if !strings.ContainsAny(text, ".:") {
		return false
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}
