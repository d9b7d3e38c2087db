package server

import "testing"

func TestTrialMemory(t *testing.T) {
	t.Parallel()
	for available, want := range map[int64]int64{0: 512 << 20, 128 << 20: 64 << 20, 1200 << 20: 200 << 20, 64 << 30: 512 << 20} {
		if got := trialMemory(available); got != want {
			t.Errorf("of %d MiB: got %d MiB, want %d", available>>20, got>>20, want>>20)
		}
	}
}
