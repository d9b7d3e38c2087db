package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// keyAnswer is all that is known about a key of a rule.
type keyAnswer struct {
	Rule       string     `json:"rule"`
	Kind       string     `json:"kind"`
	Shadow     bool       `json:"shadow,omitempty"`
	Per        []string   `json:"per"`
	Attributes attributes `json:"attributes"`
	Key        string     `json:"key"`
	Window     string     `json:"window"`
	Unit       string     `json:"unit,omitempty"`

	Used        int64    `json:"used"`
	Quota       *int64   `json:"quota,omitempty"`
	Remaining   *int64   `json:"remaining,omitempty"`
	ResetAfter  seconds  `json:"reset_after"`
	Holds       int      `json:"holds,omitempty"`
	Held        []hits   `json:"held,omitempty"` // the first of them to end
	Strikes     int64    `json:"strikes,omitempty"`
	Bans        bool     `json:"bans,omitempty"` // the rule does
	BannedUntil instant  `json:"banned_until,omitzero"`
	Degraded    bool     `json:"degraded,omitempty"`
	Leaving     *leaving `json:"leaving"`

	Override  json.RawMessage `json:"override,omitempty"`
	Overrides bool            `json:"overrides,omitempty"` // the key can have one
	Denials   []decision      `json:"denials"`
	Hidden    string          `json:"hidden,omitempty"`  // why there are no denials of this key
	Changes   []keyChange     `json:"changes,omitempty"` // for a caller with scope admin
	Sets      string          `json:"sets,omitempty"`    // why the count cannot be set
}

// keyChange is an entry of the audit trail.
type keyChange struct {
	Time   instant         `json:"time"`
	Action audit.Action    `json:"action"`
	Token  string          `json:"token,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

const (
	keyDenials = 20 // of one key
	keyChanges = 20
	keyHolds   = 100
)

// key answers what a rule has for a key.
func key(c *Caller, w http.ResponseWriter, r *http.Request) error {
	name, attrs, err := keyQuery(r)
	if err != nil {
		return err
	}
	space, err := c.Namespace()
	if err != nil {
		return err
	}
	e := space.Engine()
	u, err := e.Usage(r.Context(), name, attrs)
	if err != nil {
		return err
	}
	rules := e.Rules()
	i, ok := rules.Find(name)
	if !ok {
		return weir.ErrUnknownRule // the rules have changed meanwhile
	}
	ru, now := rules.Rule(i), time.Now()
	a := keyAnswer{
		Rule: name, Kind: u.Kind.String(), Shadow: u.Shadow, Per: ru.Per, Attributes: attributes(attrs), Key: u.Key, Window: ru.Window.String(), Unit: ru.Of,
		Used: u.Used, ResetAfter: seconds(u.ResetAfter), Holds: u.Holds, Strikes: u.Strikes, Bans: ru.Ban.For > 0, Degraded: u.Degraded,
		Leaving: leavingOf(ru, &u, now), Denials: []decision{},
		Overrides: space.Kept().Overrides != nil && ru.Kind() == rule.KindLimit && ru.Measure != window.Distinct && len(ru.Per) > 0,
	}
	if a.Per == nil {
		a.Per = []string{}
	}
	if u.Quota != window.Unlimited {
		a.Quota, a.Remaining = &u.Quota, &u.Remaining
	}
	if u.BannedUntil != 0 {
		a.BannedUntil = instant{u.BannedUntil.Time()}
	}
	switch {
	case ru.Measure == window.Distinct:
		a.Sets = "distinct"
	case ru.Window.Kind == window.KindHeld:
		a.Sets = "held"
	case u.Holds > 0:
		a.Sets = "holds"
	case u.BannedUntil != 0:
		a.Sets = "banned"
	}
	if u.Holds > 0 {
		of := map[string]string{}
		for _, at := range attrs {
			of[at.Name] = at.Value
		}
		if _, err := e.Export(r.Context(), name, export.Options{Of: of, Holds: a.addHolds}); err != nil {
			return err
		}
	}
	if o, ok := space.Kept().Overrides.Of(space.Name(), rules, name, attrs); ok {
		a.Override = o.AppendJSON(nil)
	}
	if err := a.addDenials(r.Context(), space.Tops(), rules, i, c.Holder.Share()); err != nil {
		return err
	}
	if c.May(access.Admin) == nil {
		if err := a.addChanges(r.Context(), space); err != nil {
			return err
		}
	}
	return respond(w, a)
}

// addHolds adds the holds that end first.
func (a *keyAnswer) addHolds(holds []window.Cell) {
	a.Holds = len(holds)
	for _, c := range holds[:min(len(holds), keyHolds)] {
		a.Held = append(a.Held, hits{At: instant{c.Start.Time()}, Hits: c.Hits, Leave: instant{c.Start.Add(c.Length).Time()}})
	}
}

// keyQuery reads ?rule=NAME&a.user=42….
func keyQuery(r *http.Request) (name string, attrs []weir.Attribute, err error) {
	err = query(r, func(param, value string) (err error) {
		if of, ok := strings.CutPrefix(param, "a."); ok {
			attrs, err = withAttribute(attrs, of, value)
			return err
		}
		if param != "rule" {
			return bad(param, "is unknown; want rule, and the attributes of the key with a. before their names")
		}
		name = value
		return nil
	})
	if err == nil && name == "" {
		err = bad("rule", "is missing")
	}
	slices.SortFunc(attrs, func(a, b weir.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return name, attrs, err
}

// addDenials adds the newest denials of the key. share is the caller's.
func (a *keyAnswer) addDenials(ctx context.Context, tops *top.Collector, rules *rule.Set, i int, share string) error {
	if tops == nil {
		a.Hidden = "off"
		return nil
	}
	if tops.ShowsKeys() == top.KeyNone && len(a.Per) > 0 {
		a.Hidden = "none"
		return nil
	}
	var attrs []weir.Attribute
	for _, at := range a.Attributes {
		if slices.Contains(a.Per, at.Name) {
			attrs = append(attrs, at)
		}
	}
	selected, fault := tops.Select(rules, []int{i}, attrs)
	if fault != nil {
		return fault
	}
	d, err := tops.Denials(ctx, top.Query{Rules: selected, N: keyDenials, Share: share})
	for i := range d.List {
		a.Denials = append(a.Denials, lineOf(&d.List[i]))
	}
	return err
}

// addChanges adds what was changed about the key.
func (a *keyAnswer) addChanges(ctx context.Context, space *namespace.Namespace) error {
	found, err := space.Kept().Audit.List(ctx, space.Name(), audit.MaxAsked, time.Time{})
	for i := range found.Entries {
		e := &found.Entries[i]
		if len(a.Changes) < keyChanges && e.Rule == a.Rule && a.is(e.Attributes) {
			a.Changes = append(a.Changes, keyChange{instant{e.Time}, e.Action, e.By.Token, e.Before, e.After})
		}
	}
	return err
}

// is reports whether attributes are some or all of those of the key.
func (a *keyAnswer) is(of map[string]string) bool {
	if len(of) == 0 {
		return len(a.Per) == 0
	}
	for name, value := range of {
		if !slices.Contains(a.Attributes, weir.Attribute{Name: name, Value: value}) {
			return false
		}
	}
	return true
}

// keysAnswer is the answer of [keys].
type keysAnswer struct {
	Per      []string  `json:"per"`
	Keys     []keyLine `json:"keys"`
	Complete bool      `json:"complete"` // there are no others
}

// keyLine is one key of a list.
type keyLine struct {
	Attributes attributes `json:"attributes"`
	Used       int64      `json:"used"`
	Held       int64      `json:"held,omitempty"`
	Quota      *int64     `json:"quota,omitempty"`
}

const (
	// keysMost is how many keys a list has, and keysTime how long it may take.
	keysMost = 200
	keysTime = 3 * time.Second
)

// errEnough ends a list.
var errEnough = errors.New("enough")

// keys lists keys of a rule whose store has them: with values that begin with the prefix.
func keys(c *Caller, w http.ResponseWriter, r *http.Request) error {
	name, start, most := "", "", 50
	space, err := c.Namespace()
	if err != nil {
		return err
	}
	err = query(r, func(param, value string) (err error) {
		switch param {
		case "rule":
			name = value
		case "prefix":
			start = value
		case "n":
			if most, err = strconv.Atoi(value); err != nil || most < 1 || most > keysMost {
				return bad(param, "%.64q: want a number from 1 to %d", value, keysMost)
			}
		default:
			return bad(param, "is unknown; want rule, prefix and n")
		}
		return nil
	})
	if err != nil {
		return err
	}
	end, err := answer.BeginExport(space, c.Holder)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeout(r.Context(), keysTime)
	defer cancel()
	a := keysAnswer{Per: []string{}, Keys: []keyLine{}}
	result, err := space.Engine().Export(ctx, name, export.Options{
		Begin: func(per []string) error { a.Per = append(a.Per, per...); return nil },
		Each: func(k *export.Key) error {
			if len(a.Keys) == most {
				return errEnough
			}
			if start != "" && !slices.ContainsFunc(k.Values, func(v string) bool { return strings.HasPrefix(v, start) }) {
				return nil
			}
			l := keyLine{Used: k.Used, Held: k.Held}
			for i, v := range k.Values {
				l.Attributes = append(l.Attributes, weir.Attribute{Name: a.Per[i], Value: strings.Clone(v)})
			}
			if k.HasQuota() {
				quota := k.Quota
				l.Quota = &quota
			}
			a.Keys = append(a.Keys, l)
			return nil
		},
	})
	switch {
	case errors.Is(err, errEnough), errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
	case err != nil:
		return err
	default:
		a.Complete = result.Next == nil
	}
	slices.SortFunc(a.Keys, func(x, y keyLine) int { return cmp.Compare(y.Used+y.Held, x.Used+x.Held) })
	return respond(w, a)
}
