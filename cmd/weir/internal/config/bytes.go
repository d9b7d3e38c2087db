package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a number of bytes. As text it is a number with a unit: 512KiB, 8MiB,
// 2GiB, or without one. It implements the interface of flags.
type Bytes int64

var byteUnits = []struct {
	name  string
	bytes Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns b with the largest unit that divides it.
func (b Bytes) String() string {
	if b == AutoMemory {
		return "auto"
	}
	for _, u := range byteUnits {
		if b != 0 && b%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(b/u.bytes), u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Set reads text.
func (b *Bytes) Set(text string) error {
	if text == "auto" {
		*b = AutoMemory
		return nil
	}
	number, unit := text, Bytes(1)
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > int64(1<<50)/int64(unit) {
		return fmt.Errorf("want a number of bytes such as 512KiB, 8MiB or 2GiB")
	}
	*b = Bytes(n) * unit
	return nil
}

// Type returns the name of the value in help.
func (*Bytes) Type() string { return "bytes" }
