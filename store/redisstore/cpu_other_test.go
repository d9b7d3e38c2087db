//go:build !unix

package redisstore_test

import (
	"testing"
	"time"
)

// cpuTime ends the benchmark: only Unix tells the CPU time of a process.
func cpuTime(b *testing.B) time.Duration {
	b.Skip("only Unix tells the CPU time of a process")
	return 0
}
