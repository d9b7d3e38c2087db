package overrides

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

// Book has the overrides of all namespaces. Make one with [New]. It is safe for concurrent use.
type Book struct {
	c        Config
	follower kept.Follower
	lists    sync.Map      // one caller of each namespace at a time lists overrides; see [remote.Turn]
	wake     chan struct{} // when an earlier end has become known

	mu      sync.Mutex
	records map[string]string              // values by field; guarded by mu
	loading map[string]string              // not nil: everything is being read; guarded by mu
	spaces  map[string]*space              // by the name of their namespace; guarded by mu
	engines map[string]func(*override.Set) // guarded by mu
	checked int64                          // overrides that ended until then are in no set; guarded by mu
	next    int64                          // when endLocked has something to do, or 0; guarded by mu
}

// space is what one namespace has.
type space struct {
	set      *override.Set
	n, bytes int
}

// Config configures a [Book].
type Config struct {
	Store kept.Store

	// Failed and Answered are called as those of a [kept.Follower].
	Failed   func(error)
	Answered func()

	// Ended is called when an override has ended, by one of the instances that share a store, within a
	// few seconds. It may be nil.
	Ended func(namespace string, o Override)

	// Now returns the time. Nil: time.Now.
	Now func() time.Time
}

// register is the name of the register of overrides.
const register = "overrides"

// endedFor is how long an override that has ended is left in the store, so that an instance whose clock
// is ahead does not end it for others.
const endedFor = 5 * time.Second

// pause is the time between two looks for overrides that have ended. Each reads all overrides, so those that end
// within a pause end together, up to a pause late.
const pause = 100 * time.Millisecond

// New returns a book on a store. It is empty until Run, or a change, has read the store.
func New(c Config) *Book {
	if c.Now == nil {
		c.Now = time.Now
	}
	b := &Book{c: c, wake: make(chan struct{}, 1), records: map[string]string{}, spaces: map[string]*space{}, engines: map[string]func(*override.Set){}}
	b.follower = kept.Follower{Store: c.Store, Name: register, Apply: b.apply, Failed: c.Failed, Answered: c.Answered}
	return b
}

// Follow gives the overrides of a namespace to set now, and whenever they change, until it is called with
// nil.
func (b *Book) Follow(namespace string, set func(*override.Set)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.engines, namespace)
	if set == nil {
		return
	}
	b.engines[namespace] = set
	if s := b.spaces[namespace]; s != nil {
		set(s.set)
	}
}

// Read reads what other instances have changed.
func (b *Book) Read(ctx context.Context) error { return b.follower.Sync(ctx) }

// Run follows what other instances change, and ends overrides, until ctx is done.
func (b *Book) Run(ctx context.Context) {
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() { b.follower.Run(ctx) })
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.end(ctx))
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-timer.C:
		}
	}
}

// end takes overrides that have ended out of force, and later out of the store. It returns how long to
// wait for the next one.
func (b *Book) end(ctx context.Context) time.Duration {
	now := b.c.Now()
	b.mu.Lock()
	var old []string
	if b.next != 0 && b.wait(now) <= 0 {
		old = b.endLocked(now.UnixMicro())
	}
	wait := time.Hour
	if b.next != 0 {
		wait = b.wait(now)
	}
	b.mu.Unlock()
	if len(old) > 0 {
		b.drop(ctx, old, now.Add(-endedFor).UnixMicro())
	}
	return wait
}

// wait returns how long after now endLocked has something to do. It needs mu.
func (b *Book) wait(now time.Time) time.Duration {
	return time.UnixMicro(max(b.next, b.checked+pause.Microseconds())).Sub(now)
}

// endLocked takes those overrides out of the sets that end until now, and returns some that can leave the
// store.
func (b *Book) endLocked(now int64) (old []string) {
	changes := map[string][]override.Change{}
	checked := b.checked
	b.checked, b.next = now, 0
	for field, value := range b.records {
		_, until, _, _, ok := numbers(value)
		if !ok || until == 0 {
			continue
		}
		if checked < until && until <= now {
			p, _ := parse(field) // put has parsed it
			changes[p.namespace] = append(changes[p.namespace], override.Change{Rule: p.rule, Attributes: p.names, Key: p.key, Remove: true})
		}
		switch leaves := until + endedFor.Microseconds(); {
		case until > now:
			b.expect(until)
		case leaves > now:
			b.expect(leaves)
		case len(old) < 200:
			old = append(old, field)
			b.expect(now + time.Second.Microseconds()) // again, if the store fails
		default:
			b.expect(now)
		}
	}
	b.publish(changes)
	return old
}

// expect notes that endLocked has something to do at an instant.
func (b *Book) expect(at int64) {
	if b.next == 0 || at < b.next {
		b.next = at
	}
}

// drop removes overrides that have ended from the store, and tells of those that it has removed.
func (b *Book) drop(ctx context.Context, fields []string, oldest int64) {
	var gone []string
	var values []string
	err := b.follower.Change(ctx, "", func() ([]string, []string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		gone, values = nil, nil
		for _, field := range fields {
			if _, until, _, _, ok := numbers(b.records[field]); ok && until != 0 && until <= oldest {
				gone, values = append(gone, field), append(values, b.records[field])
			}
		}
		return gone, make([]string, len(gone)), nil
	})
	if err != nil || b.c.Ended == nil {
		return // it is tried again
	}
	for i, field := range gone {
		if o, ok := read(field, values[i]); ok {
			p, _ := parse(field)
			b.c.Ended(p.namespace, o)
		}
	}
}

// apply takes over a page of the register.
func (b *Book) apply(p kept.Page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Again {
		b.loading = make(map[string]string, len(p.Fields))
	}
	if b.loading != nil {
		for i, field := range p.Fields {
			if b.loading[field] = p.Values[i]; p.Values[i] == "" {
				delete(b.loading, field)
			}
		}
		if !p.More {
			b.replace(b.loading)
			b.loading = nil
		}
		return
	}
	changes := map[string][]override.Change{}
	for i, field := range p.Fields {
		b.put(changes, field, p.Values[i])
	}
	b.publish(changes)
}

// replace makes records all that there is.
func (b *Book) replace(records map[string]string) {
	before := b.spaces
	b.records, b.spaces, b.next = make(map[string]string, len(records)), map[string]*space{}, 0
	b.checked = b.c.Now().UnixMicro()
	changes := map[string][]override.Change{}
	for namespace := range before {
		changes[namespace] = nil // those that it had are gone
	}
	for field, value := range records {
		b.put(changes, field, value)
	}
	b.publish(changes)
}

// put takes over a value, and adds what it means for the sets to changes.
func (b *Book) put(changes map[string][]override.Change, field, value string) {
	p, ok := parse(field)
	if !ok {
		return // of a later version
	}
	s := b.spaces[p.namespace]
	if s == nil {
		s = &space{}
		b.spaces[p.namespace] = s
	}
	if old, known := b.records[field]; known {
		s.n, s.bytes = s.n-1, s.bytes-len(field)-len(old)
		delete(b.records, field)
	}
	c := override.Change{Rule: p.rule, Attributes: p.names, Key: p.key, Remove: true}
	if value != "" {
		b.records[field] = value
		s.n, s.bytes = s.n+1, s.bytes+len(field)+len(value)
		switch limit, until, _, _, ok := numbers(value); {
		case !ok:
		case until != 0 && until <= b.checked:
			b.expect(until + endedFor.Microseconds())
		default:
			c.Limit, c.Remove = limit, false
			if until != 0 {
				b.expect(until)
			}
		}
	}
	changes[p.namespace] = append(changes[p.namespace], c)
}

// publish puts changes in force.
func (b *Book) publish(changes map[string][]override.Change) {
	select {
	case b.wake <- struct{}{}: // there may be an earlier end
	default:
	}
	for namespace, all := range changes {
		s := b.spaces[namespace]
		if s == nil {
			s = &space{}
			b.spaces[namespace] = s
		}
		s.set = s.set.With(all)
		if set := b.engines[namespace]; set != nil {
			set(s.set)
		}
		if s.n == 0 {
			delete(b.spaces, namespace)
		}
	}
}

// ErrMeets is wrapped in the error of an override that could meet another one in a key, where none of
// both is more specific. ErrFull is wrapped in that of one that is too many.
var (
	ErrMeets = errors.New("could meet another override in one key, with as many attributes")
	ErrFull  = errors.New("too many overrides")
)

// Put sets an override in a namespace, in the place of one with the same attributes, which it returns as
// before. Of o, the rule, the attributes, the limit, the burst, the end, the note and who sets it are given. rules are
// those of the namespace. The error is a fault, wraps ErrMeets or ErrFull, or is an outage of the store.
func (b *Book) Put(ctx context.Context, namespace string, rules *rule.Set, o Override) (set Override, before *Override, err error) {
	now := b.c.Now().UTC().Truncate(time.Microsecond)
	o.Set = now
	if err := o.check(rules, now); err != nil {
		return o, nil, err
	}
	field, value := o.field(namespace), o.value()
	if len(field) > kept.MaxField {
		return o, nil, fault.Newf("attributes", "have %d bytes with the names of the rule and the namespace, more than %d", len(field), kept.MaxField)
	}
	err = b.follower.Change(ctx, namespace, func() (fields, values []string, err error) {
		if err := b.meets(namespace, &o); err != nil {
			return nil, nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		old, known := b.records[field]
		if known && old == value {
			return nil, nil, nil // the answer of an attempt was lost
		}
		before = nil
		if was, ok := read(field, old); known && ok && (was.Until.IsZero() || was.Until.After(now)) {
			before = &was
		}
		more := len(value) - len(old)
		if !known {
			more += len(field)
		}
		if err := b.fits(namespace, more, known); err != nil {
			return nil, nil, err
		}
		return []string{field}, []string{value}, nil
	})
	return o, before, err
}

// fits returns an error if there is no room for more bytes, in an override that is known or not.
func (b *Book) fits(namespace string, more int, known bool) error {
	all, bytes := 0, 0
	for _, s := range b.spaces {
		all, bytes = all+s.n, bytes+s.bytes
	}
	s := b.spaces[namespace]
	if s == nil {
		s = &space{}
	}
	switch {
	case !known && s.n >= MaxOverrides, s.bytes+more > MaxBytes:
		return fmt.Errorf("%w: the namespace has %d, at most %d with %d bytes together", ErrFull, s.n, MaxOverrides, MaxBytes)
	case !known && all >= MaxNamespaces*MaxOverrides, bytes+more > MaxNamespaces*MaxBytes:
		return fmt.Errorf("%w: the store has %d with %d bytes together", ErrFull, all, bytes)
	}
	return nil
}

// meets returns an error if a key could have o and another override with as many attributes. It compares them without
// mu, because there may be many.
func (b *Book) meets(namespace string, o *Override) (err error) {
	r := b.setOf(namespace).Rule(o.Rule)
	if r == nil {
		return nil
	}
	for _, shape := range r.Shapes {
		same := slices.EqualFunc(shape.Attributes, o.Attributes, func(name string, a weir.Attribute) bool { return name == a.Name })
		if len(shape.Attributes) != len(o.Attributes) || same {
			continue
		}
		common := make([]int, len(shape.Attributes)) // indexes of o.Attributes, or -1
		for i, name := range shape.Attributes {
			common[i] = slices.IndexFunc(o.Attributes, func(a weir.Attribute) bool { return a.Name == name })
		}
		shape.Keys(func(key string) bool {
			rest := key
			for _, i := range common {
				var value string
				if value, rest, _ = store.CutKey(rest); i >= 0 && value != o.Attributes[i].Value {
					return true
				}
			}
			all, other := values(key), []string(nil)
			for i, name := range shape.Attributes {
				other = append(other, name+"="+all[i])
			}
			err = fmt.Errorf("%w: %s", ErrMeets, strings.Join(other, " "))
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setOf returns the overrides that are in force in a namespace, or nil.
func (b *Book) setOf(namespace string) *override.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.spaces[namespace]; s != nil {
		return s.set
	}
	return nil
}

// Idle returns how many overrides of a namespace have no effect under rules.
func (b *Book) Idle(namespace string, rules *rule.Set) (n int) {
	if b == nil {
		return 0
	}
	for name, r := range b.setOf(namespace).All() {
		for _, shape := range r.Shapes {
			shape.Keys(func(key string) bool {
				limit, _ := shape.Get([]byte(key))
				o := Override{Rule: name, Limit: r.Limits[limit].Quota, Burst: r.Limits[limit].Burst}
				for i, value := range values(key) {
					o.Attributes = append(o.Attributes, weir.Attribute{Name: shape.Attributes[i], Value: value})
				}
				if o.idle(rules) {
					n++
				}
				return true
			})
		}
	}
	return n
}

// Remove removes the override of a rule with the attributes, and returns it. In the place of an address it may have a
// network, which an earlier version of the rule made. Remove returns nil if there is none, and an error if none can be:
// [weir.ErrUnknownRule], or the fault of an attribute.
func (b *Book) Remove(ctx context.Context, namespace string, rules *rule.Set, name string, attributes []weir.Attribute) (before *Override, err error) {
	o := Override{Rule: name, Attributes: slices.Clone(attributes)}
	slices.SortFunc(o.Attributes, func(a, b weir.Attribute) int { return strings.Compare(a.Name, b.Name) })
	fields, networks := []string{o.field(namespace)}, o.networks(namespace) // as it was set under earlier rules
	i, unknown := o.known(rules)
	if _, ok := rules.Find(name); !ok {
		unknown = fmt.Errorf("%w: %.64q", weir.ErrUnknownRule, name)
	}
	if unknown == nil && len(rules.Rule(i).Per) > 0 && o.canonical(rules.Compiled(), i) == nil {
		fields = slices.Compact(append(fields, o.field(namespace)))
	}
	err = b.follower.Change(ctx, namespace, func() (gone, values []string, err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for n, field := range slices.Concat(fields, networks) {
			value, ok := b.records[field]
			was, readable := read(field, value)
			if !ok || n >= len(fields) && (len(gone) > 0 || !was.idle(rules)) {
				continue // a network that is in force is that of another key
			}
			if readable && (was.Until.IsZero() || was.Until.After(b.c.Now())) {
				before = &was
			}
			gone, unknown = append(gone, field), nil
		}
		return gone, make([]string, len(gone)), nil
	})
	return before, cmp.Or(err, unknown)
}

// Of returns the override that a key of the rule called name has, and whether there is one. The attributes
// are those of the key, and others, which are ignored. rules are those of the namespace.
func (b *Book) Of(namespace string, rules *rule.Set, name string, attributes []weir.Attribute) (o Override, ok bool) {
	i, ok := rules.Find(name)
	if b == nil || !ok {
		return o, false
	}
	o.Rule = name
	for _, a := range attributes {
		if rules.Compiled().Per(i, a.Name) >= 0 {
			o.Attributes = append(o.Attributes, a)
		}
	}
	if o.canonical(rules.Compiled(), i) != nil {
		return o, false
	}
	all := o.Attributes
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[namespace]
	if s == nil || s.set.Rule(name) == nil {
		return o, false
	}
	for _, shape := range s.set.Rule(name).Shapes { // the most specific one first
		o.Attributes = slices.DeleteFunc(slices.Clone(all), func(a weir.Attribute) bool { return !slices.Contains(shape.Attributes, a.Name) })
		field := o.field(namespace)
		value, known := b.records[field]
		if !known || len(o.Attributes) != len(shape.Attributes) {
			continue
		}
		if found, ok := read(field, value); ok && (found.Until.IsZero() || found.Until.After(b.c.Now())) {
			return found, true
		}
	}
	return o, false
}

// Page is a part of the overrides of a namespace.
type Page struct {
	Overrides []Override
	Next      string // where the next page begins; empty: there is none
	Degraded  bool   // the store has not answered yet: there may be others
}

// List returns the overrides of a namespace, or those of the rule called name, if that is not empty,
// after a page that returned next as its end. rules are those of the namespace. Callers of one namespace wait for each
// other, because it takes long where there are many. The error is that of ctx, or an outage if many wait already.
func (b *Book) List(ctx context.Context, namespace string, rules *rule.Set, name, next string) (p Page, err error) {
	end, err := remote.Turn(ctx, &b.lists, namespace)
	if err != nil {
		return p, err
	}
	defer end()
	p.Degraded = !b.follower.Known()
	prefix := string(ruleset.AppendKey(nil, namespace))
	if name != "" {
		prefix = string(ruleset.AppendKey(nil, namespace, name))
	}
	now := b.c.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	var first []string
	last := "" // fields from here on are on later pages; empty: not known yet
	for field, value := range b.records {
		if field <= next || !strings.HasPrefix(field, prefix) || last != "" && field >= last {
			continue
		}
		if _, until, _, _, ok := numbers(value); !ok || until != 0 && until <= now.UnixMicro() {
			continue
		}
		if first = append(first, field); len(first) == 2*PageSize {
			slices.Sort(first)
			first, last = first[:PageSize+1], first[PageSize]
		}
	}
	slices.Sort(first)
	if len(first) > PageSize {
		first = first[:PageSize]
		p.Next = first[PageSize-1]
	}
	for _, field := range first {
		if o, ok := read(field, b.records[field]); ok {
			o.Idle = o.idle(rules)
			p.Overrides = append(p.Overrides, o)
		}
	}
	return p, nil
}
