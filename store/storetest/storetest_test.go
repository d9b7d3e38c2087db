package storetest_test

import (
	"testing"

	"github.com/weirhq/weir/store/storetest"
)

func TestModelKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Opened { return storetest.NewModel() })
}
