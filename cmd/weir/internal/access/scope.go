package access

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is a set of permissions. The zero value has none.
type Scope uint8

// Permissions.
const (
	Decide   Scope = 1 << iota // take, check, gate, settle, cancel, renew
	Record                     // record, refund
	Read                       // usage, explain, rules, top, denials, overrides, events, export, metrics, the page
	Admin                      // forget, set, unban, audit, saving rules, reload, rotate-secret, profiles
	Override                   // set and remove overrides

	None Scope = 0 // what health checks need
	All        = Decide | Record | Read | Override | Admin
)

// scopeNames lists the permissions with their names, in the order in which String
// writes them.
var scopeNames = [...]struct {
	scope Scope
	name  string
}{{Decide, "decide"}, {Record, "record"}, {Read, "read"}, {Override, "override"}, {Admin, "admin"}}

// ScopeNames returns the names of all permissions.
func ScopeNames() []string {
	var names []string
	for _, s := range scopeNames {
		names = append(names, s.name)
	}
	return names
}

// String returns the names of the permissions in s, separated by commas.
func (s Scope) String() string {
	var names []string
	for _, row := range scopeNames {
		if s&row.scope != 0 {
			names = append(names, row.name)
		}
	}
	return strings.Join(names, ",")
}

// Has reports whether s contains all permissions in need.
func (s Scope) Has(need Scope) bool { return s&need == need }

// ParseScopes reads the names of permissions, separated by commas. At least one is
// required.
func ParseScopes(text string) (Scope, error) {
	var all Scope
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(scopeNames[:], func(row struct {
			scope Scope
			name  string
		}) bool {
			return row.name == name
		})
		if i < 0 {
			return 0, fmt.Errorf("%s: not a scope; want %s, separated by commas", shown(name), strings.Join(ScopeNames(), ", "))
		}
		all |= scopeNames[i].scope
	}
	return all, nil
}
