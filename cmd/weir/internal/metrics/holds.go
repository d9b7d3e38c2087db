package metrics

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// holdEvent is the labels of a hold.
type holdEvent struct{ rule, event string }

// began counts a hold or a ban of a take or a record.
func (n *Namespace) began(u *weir.Usage) {
	if u.Held {
		n.holds.get(holdEvent{u.Rule, "held"}).Inc()
	}
	if u.Struck {
		n.bans.get(u.Rule).Inc()
	}
}

// ended counts what became of the holds of a take.
func (n *Namespace) ended(verb store.Verb, d *weir.Decision) {
	event := map[store.Verb]string{store.Settle: "settled", store.Cancel: "cancelled", store.Renew: "renewed"}[verb]
	for i := range d.Usages {
		u := &d.Usages[i]
		switch {
		case u.Held:
			n.holds.get(holdEvent{u.Rule, event}).Inc()
			if verb == store.Settle && u.Used > u.Quota {
				n.debts.get(u.Rule).Inc()
			}
		case holds(d.Rules, u.Rule):
			n.holds.get(holdEvent{u.Rule, "late"}).Inc()
		}
	}
}

// holds reports whether takes hold under a rule.
func holds(rules *rule.Set, name string) bool {
	if rules == nil {
		return false
	}
	i, ok := rules.Find(name)
	return ok && rules.Rule(i).Holds()
}
