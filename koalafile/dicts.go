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

// maxDictWarnings is how many odd lines of one dict are shown.
const maxDictWarnings = 10

// readDict reads one line of [dicts], `name : path`, and the dict.
func (p *pass) readDict(s piece) {
	name, path, ok := s.cut(":")
	name, path = name.trim(), path.trim()
	if !ok || name.text == "" || path.text == "" {
		p.fault(s, "want a dict as name : path, such as blacklist : conf/blacklist.dat")
		return
	}
	if _, twice := p.lists[name.text]; twice {
		p.fault(name, "dict %q is there twice: want another name", name.text)
		return
	}
	p.lists[name.text] = nil
	if p.read == nil {
		p.fault(path, "dict %q: dict files cannot be read here", name.text)
		return
	}
	src, found, err := p.read(path.text)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		p.fault(path, "dict %q: file %q: %v; the path is taken from where the rule file is, then from the directory above",
			name.text, path.text, err)
		return
	}
	list, err := rule.NewList(name.text, p.items(string(src), found))
	if err != nil {
		p.fault(path, "%v", err)
		return
	}
	p.lists[name.text] = list
	p.file.Lists = append(p.file.Lists, List{Name: name.text, Path: path.text, Line: p.here.number})
	if absolute, err := filepath.Abs(found); err == nil {
		found = absolute
	}
	p.file.Paths = append(p.file.Paths, found)
}

// items are the lines of a dict file that say something, trimmed. koala
// compared each as text; what reads as several addresses stands for them now,
// and what cannot is left out.
func (p *pass) items(text, file string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	items := make([]string, 0, strings.Count(text, "\n")+1)
	blocks, wrong := 0, 0
	for number, line := range splitLines(text) {
		item := strings.TrimSpace(line)
		if item == "" {
			continue
		}
		note := func(format string, args ...any) {
			source := string([]rune(line))
			p.warnings = append(p.warnings, Fault{
				File: file, Line: number, Column: 1 + len([]rune(line[:strings.Index(line, item)])),
				Problem: fmt.Sprintf(format, args...), Source: source,
			})
		}
		if severalAddresses(item) {
			if _, err := rule.Address(item); err != nil {
				if wrong++; wrong <= maxDictWarnings {
					note("%v; koala compared the line as text, weir leaves it out", err)
				}
				continue
			}
			if blocks++; blocks == 1 {
				note("koala compared %q as text, so that no address was in it; weir takes it, and lines like it, for the addresses", item)
			}
		}
		items = append(items, item)
	}
	return items
}

// severalAddresses says whether text is meant as more than one IP address: a
// CIDR block, a range, or an IPv4 address with a *.
func severalAddresses(text string) bool {
	i := strings.IndexAny(text, "/-*")
	if i < 0 {
		return false
	}
	if strings.IndexByte(text, '*') >= 0 {
		return wildcard(text)
	}
	head, tail := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	if !isAddress(head) {
		return false
	}
	if text[i] == '/' {
		return tail != "" && strings.Trim(tail, "0123456789") == ""
	}
	return isAddress(tail)
}

// wildcard says whether text is four numbers or *, with dots between.
func wildcard(text string) bool {
	return strings.Count(text, ".") == 3 && strings.Trim(text, "0123456789.*") == ""
}

func isAddress(text string) bool {
	if !strings.ContainsAny(text, ".:") {
		return false
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}
