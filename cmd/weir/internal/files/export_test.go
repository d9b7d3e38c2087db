package files

import "time"

// Within is within.
func Within(patience time.Duration, path string, f func() ([]byte, error)) ([]byte, error) {
	return within(patience, path, f)
}
