package logs

import (
	"errors"
	"regexp"
	"slices"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// patternLine reads lines with a regular expression, whose named groups are the fields. A line
// that it does not match is not a request: the log of a system has the lines of many programs.
type patternLine struct {
	pattern *regexp.Regexp
	at      [][]int // the indexes of the value of each group
}

// compilePattern returns a pattern with named groups.
func compilePattern(text string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pattern.SubexpNames(), func(name string) bool { return name != "" }) {
		return nil, errors.New(`names no field: want groups such as (?P<user>\S+)`)
	}
	return pattern, nil
}

func newPattern(f *format, fields []string) extractor {
	p := &patternLine{pattern: f.pattern}
	of := indexesOf(fields)
	for _, name := range f.pattern.SubexpNames() {
		p.at = append(p.at, of[name])
	}
	return p
}

func (p *patternLine) extract(line string, values []string) error {
	groups := p.pattern.FindStringSubmatchIndex(line)
	if groups == nil {
		return replay.ErrOther
	}
	clear(values)
	for n, at := range p.at {
		if from := groups[2*n]; from >= 0 {
			for _, i := range at {
				values[i] = line[from:groups[2*n+1]]
			}
		}
	}
	return nil
}
