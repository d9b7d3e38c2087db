package access

import "fmt"

// DefaultNamespace is the namespace of calls that name none.
const DefaultNamespace = "default"

// Reach says which holders an authenticator admits, by the namespace that they are bound to.
type Reach uint8

const (
	// ReachDefault admits holders that may use the namespace default. It is for
	// front ends that know no other one.
	ReachDefault Reach = iota
	// ReachNamed admits all holders. It is for front ends that find the namespace of
	// each call with [Authenticator.Namespace].
	ReachNamed
	// ReachAll admits holders that may use all namespaces. It is for calls that
	// concern the whole service, such as metrics and profiles.
	ReachAll
)

// refuses returns the refusal of a holder that r does not admit, or nil.
func (r Reach) refuses(h *Holder) *Refusal {
	switch {
	case h.Namespace == "", r == ReachNamed:
		return nil
	case r == ReachAll:
		return &Refusal{
			Reason: Elsewhere,
			Detail: fmt.Sprintf("%s may use the namespace %s only; the call concerns all namespaces", h.Name, h.Namespace),
		}
	case h.Namespace == DefaultNamespace:
		return nil
	}
	return elsewhere(h, DefaultNamespace)
}

// Namespace returns the name of the namespace that a call of h is for. asked is the
// one that the call names, or empty: then it is the one that h is bound to, or
// [DefaultNamespace]. A holder that is bound to another namespace than the one
// asked for gets a [*Refusal]. A nil Holder may use all.
func (a *Authenticator) Namespace(h *Holder, asked string) (string, error) {
	switch {
	case h == nil || h.Namespace == "":
		if asked == "" {
			asked = DefaultNamespace
		}
		return asked, nil
	case asked == "" || asked == h.Namespace:
		return h.Namespace, nil
	}
	return "", a.refuse(elsewhere(h, asked))
}

func elsewhere(h *Holder, asked string) *Refusal {
	return &Refusal{
		Reason: Elsewhere,
		Detail: fmt.Sprintf("%s may use the namespace %s only, and the call is for %.64q", h.Name, h.Namespace, asked),
	}
}
