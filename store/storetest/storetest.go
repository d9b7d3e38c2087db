// Package storetest has the contract of [store.Store] as a test suite. The tests of
// a store call [Run], and also [Compare] with a [NewModel]:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Opened { … })
//	}
//
// Each file holds one part of the contract: the comment of each test states a
// promise, and the test checks it. Windows are a minute or longer, because in some
// stores keys also expire on the server's own clock, which the test does not set.
package storetest

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Opened is an open store to test, and its clock.
type Opened struct {
	// Store is the store, without keys. The function that opened it closes it,
	// with t.Cleanup.
	Store store.Store

	// Set sets the store's clock, including that of calendar windows. The clock then
	// does not advance. Set is not called during other calls to the store.
	Set func(window.Instant)
}

// Run tests the contract on a store, holds and bans included, in subtests of t. It
// calls open for each of them.
func Run(t *testing.T, open func(t testing.TB) Opened) {
	for _, test := range []struct {
		name string
		run  func(*stage)
	}{
		{"results are in the order of the ops", resultsInOrder},
		{"keys and spaces are apart", keysAreApart},
		{"spaces with one ID are the same", spacesByID},
		{"many ops in one call", manyOps},

		{"check counts nothing", checkCountsNothing},
		{"record counts past the quota", recordPastTheQuota},
		{"refund gives back", refundGivesBack},
		{"no hits only look", noHitsOnlyLook},
		{"more hits than the quota never fit", neverFits},
		{"members are counted once", membersOnce},
		{"members past the quota", membersPastTheQuota},
		{"quota of zero", quotaOfZero},
		{"counters admit everything", counters},

		{"one denies, none is counted", oneDenies},
		{"look ops never decide, and count only what is denied on demand", lookNeverCounts},
		{"shadow ops never decide", shadowNeverDecides},
		{"always ops are recorded", alwaysIsRecorded},
		{"denied hits are counted on demand", countDenied},
		{"roles matter in a take only", rolesInTakeOnly},
		{"a take up to what fits", upTo},
		{"a take of several ops up to what fits", upToTogether},

		{"hits fit after retry-after", fitAfterRetryAfter},
		{"keys are unused after reset-after", unusedAfterResetAfter},
		{"time going back frees no quota", timeGoesBack},
		{"a changed quota keeps the count", quotaChanges},

		{"read and forget", readAndForget},
		{"history is what the window counted", history},
		{"calls of one Do are decided by themselves, in order", manyCalls},
		{"namespaces are apart", namespaces},
		{"two ops on a key are refused", repeatedKey},
		{"a context that is done counts nothing", contextDone},
		{"close", closing},

		{"a call with a record counts once", onceCounts},
		{"a record is of one request", onceConflicts},
		{"a record ends", onceEnds},
		{"a record of other ops", onceOtherOps},
		{"a record of a denied take", onceDenied},
		{"a record of a denied take without what denied it", onceStaysDenied},
		{"a record keeps the hold of its take", onceHolds},
		{"only looking for a record", onceLooks},
		{"calls of one Do with one record", onceTogether},
		{"64 goroutines, one record", onceUnderLoad},

		{"64 goroutines, one key", oneKeyUnderLoad},
		{"64 goroutines, several keys", severalKeysUnderLoad},

		{"a hold counts until it ends", holdCounts},
		{"settle and cancel act once", endsOnce},
		{"a cancel gives back what its take counted", cancelGivesBack},
		{"a denied take holds nothing", deniedHoldsNothing},
		{"shadow and always ops hold", rolesHold},
		{"a renewal moves the end", renewals},
		{"holds that are recorded", recordedHolds},
		{"a strike bans, whoever else denies", strikes},
		{"a ban in a shadow op never decides", shadowBan},
		{"a denied take moves the end of a ban on demand", countDeniedWhileBanned},
		{"a strike ends no hold", holdsOutliveBans},
		{"a rule that loses hold or ban", lostOnReload},
		{"a hold that ends under a lowered quota", holdsUnderLoweredQuota},
		{"records under a lowered quota", recordsUnderLoweredQuota},
		{"refund of all", refundAll},
		{"forget lifts a ban", forgetLifts},
		{"hits are set", setsHits},
		{"a ban is lifted", liftsBans},
		{"64 goroutines in flight", inFlightUnderLoad},

		{"a reserve holds a part of what is left", reserveCounts},
		{"a reservation ends once", reserveEndsOnce},
		{"a reserve of several ops", reserveTogether},
		{"a reservation ends with its period", reserveInPeriods},
		{"a key has a highest number of reservations", reserveMost},
		{"16 goroutines reserve", reserveUnderLoad},
		{"an export has each key", exportsKeys},
		{"holds of a closed period", exportsClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(newStage(t, open))
		})
	}
}

// start is the instant at which every test begins: a Monday noon.
var start = window.At(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))

// stage is a test with its store.
type stage struct {
	*testing.T
	Opened
	open func(testing.TB) Opened
}

func newStage(t *testing.T, open func(testing.TB) Opened) *stage {
	s := &stage{t, open(t), open}
	s.at(0)
	return s
}

// each calls test with a new store for every kind of window and every measure.
func (s *stage) each(test func(s *stage, l *window.Compiled)) {
	for name, l := range limits() {
		s.Run(name, func(t *testing.T) { test(newStage(t, s.open), l) })
	}
}

// at sets the clock to d after the start.
func (s *stage) at(d time.Duration) { s.Set(start.Add(d)) }

// do decides one call and returns the results of its ops.
func (s *stage) do(verb store.Verb, ops ...store.Op) []window.Result {
	s.Helper()
	if err := store.Do(s.Context(), s.Store, verb, ops); err != nil {
		s.Fatalf("%v of %d ops: got error %v", verb, len(ops), err)
	}
	results := make([]window.Result, len(ops))
	for i := range ops {
		results[i] = ops[i].Result
	}
	return results
}

// one decides a call of one op and returns its result.
func (s *stage) one(verb store.Verb, op store.Op) window.Result {
	s.Helper()
	return s.do(verb, op)[0]
}

// used fails the test when not exactly want hits of each op are used.
func (s *stage) used(want int64, ops ...store.Op) {
	s.Helper()
	for _, op := range ops {
		op.N = 0
		if got := s.one(store.Check, op).Used; got != want {
			s.Errorf("used of %s in %s: got %d, want %d", op.Key, op.Space.ID(), got, want)
		}
	}
}

// hourly returns a limit of quota hits an hour, exact to the hit.
func hourly(quota int64) *window.Compiled {
	return window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Hour)})
}

// hit returns an op of one hit on a key.
func hit(space string, limit *window.Compiled, key string) store.Op {
	return store.Op{Space: store.NewSpace("", space, "", 0), Limit: limit, Key: []byte(key), N: 1}
}

// times returns op with n hits.
func times(n int64, op store.Op) store.Op {
	op.N = n
	return op
}

// as returns op in another role.
func as(role store.Role, op store.Op) store.Op {
	op.Role = role
	return op
}
