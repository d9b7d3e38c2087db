// Package trial runs a log through the rules in force and through changed ones, for the page, in a process of its
// own: a trial takes a core and as much memory as the log has keys, which decisions must not lack.
//
// A [Runner] is the side of the service. It writes the job and the log to a file, which has no name any more when the
// trial begins, starts the program again as a worker whose standard input is that file, and reads its progress and
// its result. [Work] is the worker.
package trial

import (
	"encoding/json"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// Job is what a trial runs.
type Job struct {
	// File is the path of the rules file, for the lists that it names. Before and After are its text in force,
	// and the changed one.
	File   string `json:"file"`
	Before string `json:"before"`
	After  string `json:"after"`

	// Rules are the limits for which other quotas are measured. Empty: the limits that After changes, at most
	// [mostSwept] of them.
	Rules []string `json:"rules"`

	// Log is the name of the log, and Format its description as package logs reads it: YAML or JSON.
	Log    string          `json:"log"`
	Format json.RawMessage `json:"format"`

	// HideKeys leaves keys, and lines, out of the result.
	HideKeys bool `json:"hide_keys"`

	// Memory is how many bytes of memory the worker may take. The runner sets it.
	Memory int64 `json:"memory"`
}

// Result is what a trial has found.
type Result struct {
	Comparison *replay.Comparison `json:"comparison"`

	// Suggestions has the limits with other quotas. The numbers of each are those of a rules file with only this rule.
	Suggestions []*replay.Suggestion `json:"suggestions"`

	// Quotas has the quota before and after of each limit in Suggestions, by name. 0 stands for none.
	Quotas map[string][2]int64 `json:"quotas"`

	// Unswept are limits whose other quotas were not measured, because that takes too much memory.
	Unswept []string `json:"unswept,omitempty"`

	// Tests is a test file with some of the requests that are decided otherwise, or empty.
	Tests string `json:"tests"`

	Seconds float64 `json:"seconds"`
}

// Progress is how far a trial is.
type Progress struct {
	// Bytes is how much was read of the log, in all passes, and Total how much there is to read. Lines is the
	// number of lines in the current pass.
	Bytes int64 `json:"bytes"`
	Total int64 `json:"total"`
	Lines int64 `json:"lines"`
}

// message is a line that a worker prints.
type message struct {
	Progress *Progress       `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
}

const (
	// progressEvery is how often a worker prints its progress.
	progressEvery = 200 * time.Millisecond

	// MaxMemory is the most memory, in bytes, that is given to a worker.
	MaxMemory = 512 << 20

	// mostSwept is the number of limits that are swept if the job names none. More can be named.
	mostSwept = 3

	// MostRules is the number of limits that a job may name.
	MostRules = 10
)
