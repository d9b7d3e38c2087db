package weir

import (
	"errors"

	"github.com/weirhq/weir/internal/plan"
)

// Size is how much one or several decisions will hold. It is known before
// anything is counted.
type Size struct {
	// Usages is the number of [Decision.Usages].
	Usages int

	// Text is the bytes of their rules and keys.
	Text int64
}

// usageBytes is about what a usage takes beside its rule and its key, written as
// JSON.
const usageBytes = 160

// Bytes returns about how many bytes the decisions take as text, without escapes.
func (s Size) Bytes() int64 { return int64(s.Usages)*usageBytes + s.Text }

// ErrLarge is the error for a request, or a batch, whose decisions would be larger
// than [WithMaxSize] allows. Nothing was counted.
var ErrLarge = errors.New("weir: the answer would be too large: too many rules match, or their keys are too long")

// addPlan adds the size of the decision about what p has planned.
func (s *Size) addPlan(p *plan.Plan) {
	s.add(p.Rules, p.Now.Of, p.Request.Values)
	s.add(p.Rules, p.Later.Of, p.Request.Values)
}

// add adds the size of the usages of rules that match values.
func (s *Size) add(rules *plan.Rules, matched []int, values []string) {
	s.Usages += len(matched)
	for _, i := range matched {
		s.Text += int64(len(rules.Prepared(i).Name) + rules.KeyLen(i, values))
	}
}

// admitted returns [ErrLarge] if decisions of s would take more than most bytes and most is
// not 0. Otherwise it returns what admit returns, or nil if admit is nil.
func (s Size) admitted(most int64, admit func(Size) error) error {
	switch {
	case most > 0 && s.Bytes() > most:
		return ErrLarge
	case admit != nil:
		return admit(s)
	}
	return nil
}
