package weir

import (
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
)

// addPlan adds the size of the decision about what p has planned to s.
func addPlan(s *run.Size, p *plan.Plan) {
	addUsages(s, p.Rules, p.Now.Of, p.Request.Values)
	addUsages(s, p.Rules, p.Later.Of, p.Request.Values)
}

// addUsages adds the size of the usages of rules that match values to s.
func addUsages(s *run.Size, rules *plan.Rules, matched []int, values []string) {
	s.Usages += len(matched)
	for _, i := range matched {
		s.Text += int64(len(rules.Prepared(i).Name) + rules.KeyLen(i, values))
	}
}
