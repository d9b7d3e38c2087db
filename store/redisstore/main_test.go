package redisstore_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a test leaves a goroutine behind: of the store, or of
// the client that it uses.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
