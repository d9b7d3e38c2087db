// Package measure calls limiters and measures time, memory and what they admit.
// Every number is the median of rounds in which all rows take turns, so that a
// noisy minute of the machine affects all rows alike.
package measure

import (
	"math"
	"slices"
)

// Numbers are the results of one turn of a row, by column. NaN is "none".
type Numbers []float64

// None returns NaN, which stands for no number.
func None() float64 { return math.NaN() }

// Rounds runs the jobs in turns, n times, and returns the median of each number of
// each job.
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

// Medians returns the medians of the numbers of some turns.
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

// median returns the middle value, the lower one of two, or NaN without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return None()
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
