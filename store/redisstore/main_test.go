package redisstore_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if a test leaks a goroutine: of the store, or of
// the client that it uses. It also runs the child of TestKilledHolder.
func TestMain(m *testing.M) {
	if url := os.Getenv(holderURL); url != "" {
		if err := holdForever(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
