// Package measure asks limiters and tells what it cost, what they kept, and
// what they let through. Every number is the median of rounds in which all rows
// take their turn, so that a noisy minute of the machine hits them alike.
package measure

import (
	"math"
	"slices"
)

// Numbers are what one turn of one row found, by column. NaN is "none".
type Numbers []float64

// None is a number that there is not.
func None() float64 { return math.NaN() }

// Rounds gives each job its turn, n times over, and returns the median of each
// number of each job.
func Rounds(n int, jobs []func() Numbers) []Numbers {
	turns := make([][]Numbers, len(jobs))
	for range n {
		for i, job := range jobs {
			turns[i] = append(turns[i], job())
		}
	}
	medians := make([]Numbers, len(jobs))
	for i, t := range turns {
		medians[i] = Medians(t)
	}
	return medians
}

// Medians are the medians of each number over some turns.
func Medians(turns []Numbers) Numbers {
	if len(turns) == 0 {
		return nil
	}
	medians := make(Numbers, len(turns[0]))
	for column := range medians {
		var values []float64
		for _, t := range turns {
			if !math.IsNaN(t[column]) {
				values = append(values, t[column])
			}
		}
		medians[column] = median(values)
	}
	return medians
}

// median is the middle of values, the lower one of two; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return None()
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
