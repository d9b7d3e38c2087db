package rolling

import "math"

// Number is the type of the values of a window: an integer or floating-point type,
// or a type derived from one, such as [time.Duration].
//
// A sum has the same type, and overflows as the type does: integers wrap around.
// Choose a type that can hold the sum of a whole window.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// isFloat reports whether T is a floating-point type. The compiler knows the result
// for each T, so the branch costs nothing.
func isFloat[T Number]() bool {
	one := T(1)
	return one/2 != 0
}

// isOne reports whether v is the integer 1.
func isOne[T Number](v T) bool { return !isFloat[T]() && v == 1 }

// toWord returns v as a word of a cell: the bits of a float64, or an integer modulo
// 2^64, in which sums are right for every shorter type.
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

// below reports whether v replaces m as the minimum. above reports whether v
// replaces m as the maximum. Any value replaces NaN.
func below[T Number](v, m T) bool { return v < m || isNaN(m) }
func above[T Number](v, m T) bool { return v > m || isNaN(m) }

func isNaN[T Number](v T) bool { return isFloat[T]() && math.IsNaN(float64(v)) }
