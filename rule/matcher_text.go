package rule

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Prefix returns a test that holds for text that starts with p.
func Prefix(p string) Test { return prefix(p) }

type prefix string

func (p prefix) Holds(value string) bool { return strings.HasPrefix(value, string(p)) }
func (p prefix) String() string          { return "is text that starts with " + strconv.Quote(string(p)) }

// Suffix returns a test that holds for text that ends with s.
func Suffix(s string) Test { return suffix(s) }

type suffix string

func (s suffix) Holds(value string) bool { return strings.HasSuffix(value, string(s)) }
func (s suffix) String() string          { return "is text that ends with " + strconv.Quote(string(s)) }

// Pattern returns a test that holds for text in which the regular expression re
// matches somewhere. To match the whole text, anchor re with ^ and $. The syntax
// is that of package regexp. The error states what is wrong with re and at which
// character.
func Pattern(re string) (Test, error) {
	compiled, err := regexp.Compile(re)
	if err == nil {
		return pattern{compiled}, nil
	}
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return nil, fmt.Errorf("pattern %q: %w", re, err)
	}
	at := strings.Index(re, bad.Expr)
	if at < 0 || bad.Expr == "" {
		return nil, fmt.Errorf("pattern %q: %s", re, bad.Code)
	}
	return nil, fmt.Errorf("pattern %q: %s at character %d: %q",
		re, bad.Code, utf8.RuneCountInString(re[:at])+1, bad.Expr)
}

type pattern struct{ re *regexp.Regexp }

func (p pattern) Holds(value string) bool { return p.re.MatchString(value) }
func (p pattern) String() string          { return "is text that matches " + strconv.Quote(p.re.String()) }
