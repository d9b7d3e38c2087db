package scripttest_test

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// TestScripts runs testdata/*.txt: rules, requests at their instants, and what
// the engine decides. They show what a rule can do. Package clienttest runs
// them over the network.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, "testdata", func(_ *testing.T, e *weir.Engine) scripttest.Decider { return e })
}
