package envoyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Config has the rule files of a directory. It is immutable and safe for concurrent
// use.
type Config struct {
	// Set has a rule for each limit. A request that it decides has the name of the
	// rule in the attribute [LimitAttribute], and the entries of a descriptor as
	// text in [DescriptorAttribute].
	Set *rule.Set

	// Warnings state what has no effect, in the order of the files.
	Warnings fault.List

	options Options
	files   []*file
	domains map[string]*level
	limits  []*Limit
	stated  []*Limit // limits, and those that are unlimited
}

// Attributes of the requests that the rules of a Config decide.
const (
	LimitAttribute      = "limit"
	DescriptorAttribute = "descriptor"
)

// Options are the settings of the reference service that change what its files
// mean.
type Options struct {
	// MergeDomains adds up files with the same domain. Without it they are an
	// error.
	MergeDomains bool

	// SpareDenied makes limits not count calls that are denied.
	SpareDenied bool

	// CalendarMonths makes a month one of the calendar, in UTC, instead of 30 days.
	CalendarMonths bool
}

// Limit is the rate_limit of a descriptor in a file.
type Limit struct {
	// Rule is the name of the rule that counts. It is empty for a limit that does
	// not count: Unlimited, or a descriptor without rate_limit.
	Rule string

	// Requests are admitted in each window of Times units.
	Unit      Unit
	Times     uint32
	Requests  uint32
	Unlimited bool

	// Name is the limit's own name, and Replaces has the names of those that it
	// replaces in the same call.
	Name     string
	Replaces []string

	// Shadow limits never deny. A call is over the limits with Quota only when it
	// is over all of them.
	Shadow, Quota bool

	// Metadata is the metadata of answers if the limit is not exceeded.
	Metadata map[string]any

	// Path is the keys and values on the way to the limit, KEY or KEY_VALUE, with
	// the domain first. ValueMetric has for each key whether metrics name its
	// value, and Detailed makes them name all. Instead of values that share a counter, metrics
	// name their pattern.
	Path        []string
	ValueMetric []bool
	Detailed    bool

	keys   []string // of the path, without the domain and values
	shared []bool   // for each key: values share a counter
}

// level has the descriptors below a domain or a descriptor.
type level struct {
	exact map[[2]string]*descriptor // by key and value, which is "" for any
	wild  []*descriptor             // with *, in the order of the files
}

func newLevel() *level { return &level{exact: map[[2]string]*descriptor{}} }

// Source is the text of one file.
type Source struct {
	Name string
	Text []byte
}

// New returns the configuration of sources. The error is a [fault.List] with
// everything that is wrong.
func New(sources []Source, o Options) (*Config, error) {
	c := &Config{options: o, domains: map[string]*level{}}
	var faults fault.List
	from := map[string]string{}
	for _, s := range sources {
		f, err := parse(s.Name, s.Text)
		if err != nil {
			faults = append(faults, fault.Of(err)...)
			continue
		}
		if other, taken := from[f.domain]; taken && !o.MergeDomains {
			faults = append(faults, &fault.Fault{
				Place:   f.place,
				Problem: fmt.Sprintf("domain %q is in %s, too: want one file for each domain, or MERGE_DOMAIN_CONFIG=true", f.domain, other),
			})
			continue
		}
		from[f.domain] = s.Name
		c.files = append(c.files, f)
		c.Warnings = append(c.Warnings, f.warnings...)
	}
	for _, f := range c.files {
		l := c.domains[f.domain]
		if l == nil {
			l = newLevel()
			c.domains[f.domain] = l
		}
		faults = append(faults, c.add(l, f, f.descriptors, Limit{Path: []string{f.domain}, ValueMetric: []bool{false}, shared: []bool{false}})...)
	}
	if len(faults) > 0 {
		return nil, faults.Err()
	}
	names(c.limits)
	rules := make([]rule.Rule, len(c.limits))
	for i, l := range c.limits {
		rules[i] = l.rule(o)
	}
	var err error
	if c.Set, err = rule.New(rules, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// add adds descriptors to l. above has the path that leads there.
func (c *Config) add(l *level, f *file, descriptors []*descriptor, above Limit) (faults fault.List) {
	for _, d := range descriptors {
		d.Path = append(slices.Clip(above.Path), d.joined())
		d.ValueMetric = append(slices.Clip(above.ValueMetric), d.valueMetric)
		d.keys = append(slices.Clip(above.keys), d.key)
		d.shared = append(slices.Clip(above.shared), d.share)
		if d.limited {
			c.stated = append(c.stated, &d.Limit)
			if !d.Unlimited {
				c.limits = append(c.limits, &d.Limit)
			}
		}
		if len(d.children) > 0 {
			d.below = newLevel()
			faults = append(faults, c.add(d.below, f, d.children, d.Limit)...)
		}
		if l.exact[d.id()] != nil { // of another file
			faults = append(faults, &fault.Fault{
				Place:   fault.Place{File: f.name, Line: d.line, Column: 1},
				Problem: fmt.Sprintf("%q is the key of a descriptor already, in another file of the domain", d.joined()),
			})
		}
		if strings.Contains(d.joined(), "*") {
			l.wild = append(l.wild, d)
		}
		l.exact[d.id()] = d
	}
	return faults
}

// rule returns the rule of l.
func (l *Limit) rule(o Options) rule.Rule {
	r := rule.Rule{
		Name: l.Rule, When: []rule.Condition{{Attribute: LimitAttribute, Test: rule.Equal(l.Rule)}}, Per: []string{DescriptorAttribute},
		Quota: &rule.Quota{Value: int64(l.Requests)}, Window: o.window(l.Unit, l.Times), CountDenied: !o.SpareDenied,
	}
	if l.Shadow {
		r.Mode = rule.Shadow
	}
	return r
}

// Window returns the windows of limits of a number of units.
func (c *Config) Window(u Unit, times uint32) window.Window { return c.options.window(u, times) }

func (o Options) window(u Unit, times uint32) window.Window {
	if u == Month && times == 1 && o.CalendarMonths {
		return window.Calendar(window.Month, nil)
	}
	return window.Aligned(time.Duration(times) * u.Length())
}

// OverrideRule returns the name of the rule for a limit that comes with a call: that
// of l if it has the same window, so that both share their counters, and otherwise
// one for the whole domain.
func (c *Config) OverrideRule(domain string, l *Limit, w window.Window) string {
	if l != nil && l.Rule != "" && c.Window(l.Unit, l.Times) == w {
		return l.Rule
	}
	length := w.Length.String()
	if w.Kind == window.KindCalendar {
		length = Month.String()
	}
	return nameOf([]string{stated.Descriptor, domain, length}, true)
}

// OverrideSet returns a rule like those of the files, with a name from
// [Config.OverrideRule].
func (c *Config) OverrideSet(name string, quota uint32, w window.Window) (*rule.Set, error) {
	own := Limit{Rule: name, Requests: quota}
	r := own.rule(c.options)
	r.Window = w
	return rule.New([]rule.Rule{r}, nil)
}

// names gives each limit the name of its rule: its path, in characters that names
// can have. If that is not unique, a hash follows.
func names(limits []*Limit) {
	taken := map[string]int{}
	for _, l := range limits {
		taken[nameOf(l.Path, false)]++
	}
	for _, l := range limits {
		l.Rule = nameOf(l.Path, taken[nameOf(l.Path, false)] > 1)
	}
}

// maxName is the maximum length of a name without a hash.
const maxName = 80

// nameOf returns a name for a path. It adds a hash if the name lacks a part of the path, or if
// hashed is set.
func nameOf(path []string, hashed bool) string {
	text := strings.Join(path, ".")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, text)
	if len(name) > maxName {
		name = name[:maxName]
	}
	if first := name[0]; first == '.' || first == '_' || first == '-' {
		name = "d" + name
	}
	if name == text && !hashed {
		return name
	}
	h := sha256.New()
	for _, part := range path {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return name + "-" + hex.EncodeToString(h.Sum(nil)[:4])
}

// Dump returns the limits in the form of that service's debug endpoint, a line each:
// DOMAIN.KEYS: unit=HOUR requests_per_unit=5, shadow_mode: false.
func (c *Config) Dump() string {
	var b strings.Builder
	for _, l := range c.stated {
		unit := "UNKNOWN"
		if !l.Unlimited {
			unit = strings.ToUpper(l.Unit.String())
		}
		fmt.Fprintf(&b, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t", strings.Join(l.Path, "."), unit, l.Requests, l.Shadow)
		if l.Times > 1 {
			fmt.Fprintf(&b, ", unit_multiplier: %d", l.Times)
		}
		if l.Quota {
			b.WriteString(", quota_mode: true")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// HasValues reports whether [Limit.MetricKeys] depends on the values of entries.
func (l *Limit) HasValues() bool { return l.Detailed || slices.Contains(l.ValueMetric, true) }

// MetricKeys returns the domain, and the keys by which metrics count a call under l.
// values are those of the entries. With value_to_metric the value of an entry is
// part of its key, and with detailed_metric those of all are.
func (l *Limit) MetricKeys(values []string) []string {
	keys := slices.Clone(l.Path)
	for i := 1; i < len(keys) && i <= len(values); i++ {
		if !l.Detailed && !l.ValueMetric[i] || l.shared[i] {
			continue
		}
		keys[i] = l.keys[i-1]
		if values[i-1] != "" {
			keys[i] += "_" + values[i-1]
		}
	}
	return keys
}
