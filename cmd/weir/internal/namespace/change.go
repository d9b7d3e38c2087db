package namespace

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
)

// Kept is what the namespaces of a service keep beside their counters. Its fields may be nil.
type Kept struct {
	Overrides *overrides.Book
	Audit     *audit.Trail

	// Told is called with each change of an override that this instance has made.
	Told func(OverrideChange)
}

// OverrideChange is a change of an override.
type OverrideChange struct {
	Namespace string
	By        audit.Caller
	Before    *overrides.Override // nil: there was none
	After     *overrides.Override // nil: it was removed
}

// WithKept makes n keep in k, and returns n. It must be called before n is used.
func (n *Namespace) WithKept(k *Kept) *Namespace {
	n.kept = k
	return n
}

// Kept returns what n keeps in.
func (n *Namespace) Kept() *Kept { return n.kept }

// CallerOf returns who makes a call from an address, with or without a port. h may be nil.
func CallerOf(h *access.Holder, address string) audit.Caller {
	c := audit.Caller{Address: address}
	if host, _, err := net.SplitHostPort(address); err == nil {
		c.Address = host
	}
	if h != nil {
		c.Token = h.Name
	}
	return c
}

// SetOverride sets an override for a caller; see [overrides.Book.Put].
func (n *Namespace) SetOverride(ctx context.Context, by audit.Caller, o overrides.Override) (overrides.Override, error) {
	o.By = by.Token
	set, before, err := n.Kept().Overrides.Put(ctx, n.name, n.engine.Rules(), o)
	if err == nil {
		n.told(OverrideChange{Namespace: n.name, By: by, Before: before, After: &set})
	}
	return set, err
}

// RemoveOverride removes an override for a caller; see [overrides.Book.Remove].
func (n *Namespace) RemoveOverride(ctx context.Context, by audit.Caller, rule string, attributes []weir.Attribute) error {
	before, err := n.Kept().Overrides.Remove(ctx, n.name, n.engine.Rules(), rule, attributes)
	if err == nil && before != nil {
		n.told(OverrideChange{Namespace: n.name, By: by, Before: before})
	}
	return err
}

// told records a change.
func (n *Namespace) told(c OverrideChange) {
	k := n.Kept()
	e := audit.Entry{Action: audit.OverrideSet, By: c.By}
	of := c.After
	if of == nil {
		e.Action, of = audit.OverrideRemoved, c.Before
	}
	e.Rule, e.Attributes = of.Rule, mapOf(of.Attributes)
	if c.Before != nil {
		e.Before = c.Before.AppendJSON(nil)
	}
	if c.After != nil {
		e.After = c.After.AppendJSON(nil)
	}
	k.Audit.Add(n.name, e)
	if k.Told != nil {
		k.Told(c)
	}
}

func mapOf(attributes []weir.Attribute) map[string]string {
	m := make(map[string]string, len(attributes))
	for _, a := range attributes {
		m[a.Name] = a.Value
	}
	return m
}

// keyOf returns those of attributes that a key of a rule has. A caller may send others, which can be large.
func (n *Namespace) keyOf(name string, attributes []weir.Attribute) map[string]string {
	rules := n.engine.Rules()
	i, ok := rules.Find(name)
	if !ok {
		return nil
	}
	per := rules.Rule(i).Per
	return mapOf(slices.DeleteFunc(slices.Clone(attributes), func(a weir.Attribute) bool { return !slices.Contains(per, a.Name) }))
}

// Forget drops what a rule has counted for a key, for a caller.
func (n *Namespace) Forget(ctx context.Context, by audit.Caller, rule string, attributes []weir.Attribute) error {
	e := audit.Entry{Action: audit.Forget, By: by, Rule: rule, Attributes: n.keyOf(rule, attributes)}
	if n.Kept().Audit != nil {
		if u, err := n.engine.Usage(ctx, rule, attributes); err == nil {
			e.Before = usedJSON(u.Used)
			if u.Banned {
				e.Before = bannedJSON(&u)
			}
		}
	}
	err := n.engine.Forget(ctx, rule, attributes)
	if err == nil {
		n.Kept().Audit.Add(n.name, e)
	}
	return err
}

// SetCount makes hits the number of hits that a rule counts for a key, for a caller. It returns
// what was counted before, and what is counted now.
func (n *Namespace) SetCount(ctx context.Context, by audit.Caller, rule string, attributes []weir.Attribute, hits int64) (before, used int64, err error) {
	r, err := n.engine.Set(ctx, rule, attributes, hits)
	if err == nil {
		n.Kept().Audit.Add(n.name, audit.Entry{
			Action: audit.CountSet, By: by, Rule: rule, Attributes: n.keyOf(rule, attributes), Before: usedJSON(r.Before), After: usedJSON(r.Used),
		})
	}
	return r.Before, r.Used, err
}

// LiftBan ends the ban of a key, for a caller. It reports whether the key was banned.
func (n *Namespace) LiftBan(ctx context.Context, by audit.Caller, rule string, attributes []weir.Attribute) (lifted bool, err error) {
	before, err := n.engine.Usage(ctx, rule, attributes)
	if err == nil {
		err = n.engine.Unban(ctx, rule, attributes)
	}
	if err != nil || !before.Banned {
		return false, err
	}
	n.Kept().Audit.Add(n.name, audit.Entry{
		Action: audit.BanLifted, By: by, Rule: rule, Attributes: n.keyOf(rule, attributes), Before: bannedJSON(&before),
	})
	return true, nil
}

func bannedJSON(u *weir.KeyUsage) []byte {
	return append(u.BannedUntil.Time().UTC().AppendFormat([]byte(`{"banned_until":"`), time.RFC3339Nano), `"}`...)
}

func usedJSON(used int64) []byte { return append(strconv.AppendInt([]byte(`{"used":`), used, 10), '}') }
