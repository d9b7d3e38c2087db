// Package testfile defines the content of a test file, which package rulefile reads and
// package ruletest runs.
package testfile

import (
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// File is the content of a test file.
type File struct {
	Rules *rule.Set // to test
	Cases []Case
}

// Case is a list of steps. Each case starts with empty counters.
type Case struct {
	Name  string
	Start time.Time // in the zone of the case
	Steps []Step
}

// Step is one request, or several equal ones.
type Step struct {
	Verb string    // take, check, record, refund, settle, cancel, renew or forget
	At   time.Time // of the first request

	// Attributes alternates names and values.
	Attributes []string

	Hits     int64         // 0 if the file sets none
	Feedback string        // in a refund
	Receipt  string        // the name of a take, in it and in a settle, cancel or renew
	Rule     string        // in a forget: the rule whose counter is dropped
	Repeat   int           // number of requests, at least 1
	Every    time.Duration // time between them

	Expect []Field
	Place  fault.Place
}

// Field is one expectation.
type Field struct {
	// Key is the path of the field below expect, such as "allowed" or
	// "limits.posts.used".
	Key string

	// Want is the expected value as text: true or false, a name, a number, a
	// length of time as [time.Duration] prints it, "never", or a list of names
	// with blanks between them.
	Want string

	Place fault.Place
}
