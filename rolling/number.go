package rolling

import "math"

// Number is what a window adds up: whole numbers, floating-point numbers, and
// types made of them, such as [time.Duration].
//
// A sum is of the same type, and overflows as that type does: whole numbers
// wrap around. Choose one that holds the sum of a whole window.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// isFloat is known when the code is compiled for T; the branch costs nothing.
func isFloat[T Number]() bool {
	one := T(1)
	return one/2 != 0
}

// toWord is v as the word that a cell keeps: bits of a float64, or a whole
// number modulo 2^64, in which sums come out right for every shorter type.
func toWord[T Number](v T) uint64 {
	if isFloat[T]() {
		return math.Float64bits(float64(v))
	}
	return uint64(v)
}

func fromWord[T Number](word uint64) T {
	if isFloat[T]() {
		return T(math.Float64frombits(word))
	}
	return T(word)
}

// below reports whether v takes the place of m as the least value, and above
// as the most. What is not a number (NaN) gives way to anything.
func below[T Number](v, m T) bool { return v < m || isNaN(m) }
func above[T Number](v, m T) bool { return v > m || isNaN(m) }

func isNaN[T Number](v T) bool { return isFloat[T]() && math.IsNaN(float64(v)) }
