package window

import "time"

// Kind is the algorithm of a window.
type Kind uint8

const (
	KindSliding  Kind = iota // see [Sliding]
	KindCells                // see [Cells]
	KindFixed                // see [Fixed]
	KindCalendar             // see [Calendar]
	KindBucket               // see [Bucket]
	KindHeld                 // see [Held]
	KindEver                 // see [Ever]
	KindAligned              // see [Aligned]
)

// String returns the kind's name as rules files write it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "unknown"
}

// Measure is what a limit counts.
type Measure uint8

const (
	Count    Measure = iota // hits
	Sum                     // weights: Hits.N is the weight of a request
	Distinct                // different members; one that is in the window is free
)

var measureNames = [...]string{"count", "sum", "distinct"}

// String returns the measure's name: count, sum or distinct.
func (m Measure) String() string { return name(measureNames[:], int(m)) }

// Period is the length of a calendar window.
type Period uint8

const (
	Minute Period = iota + 1
	Hour
	Day
	Week
	Month
	Year
)

var periodNames = [...]string{"none", "minute", "hour", "day", "week", "month", "year"}

// String returns the period's name as rules files write it.
func (p Period) String() string { return name(periodNames[:], int(p)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

// Window describes how long hits count: a kind and its settings. The zero value
// is invalid. Make one with [Sliding], [Cells], [Fixed], [Calendar], [Bucket],
// [Held], [Ever] or [Aligned], and then set other fields of its kind. A field that the kind does not have must
// be zero; [Compile] reports it. A Window is comparable.
type Window struct {
	Kind Kind

	// Length is the length of the window, in whole microseconds, from one up to
	// [MaxLength]. For a bucket it is the time in which the quota drains, for a
	// held window how long a place is held without being renewed. A calendar
	// window has a Period instead, and an ever window has no length.
	Length time.Duration

	// Precision is the most dates that a sliding window keeps for a key. Up to
	// a quota of that size each hit has its own date, and the window is exact.
	// Above it, hits are kept in groups of quota/Precision, rounded up, that
	// share a date. 0 means 100; the most is [MaxEntries].
	Precision int

	// N is the number of cells of a cells window. 0 means 60; the
	// most is [MaxEntries].
	N int

	// Burst is the most hits that a bucket admits at once. 0 means the quota.
	Burst int64

	// Period, Anchor and Zone define a calendar window. Anchor is the day on
	// which a week (1 Monday … 7 Sunday) or a month (1 … 31) starts; a month
	// that is shorter starts on its last day. Anchor 0 means 1, and other
	// periods have none. A nil Zone means UTC.
	Period Period
	Anchor int
	Zone   *time.Location
}

const (
	// defaultPrecision is the default of Window.Precision.
	defaultPrecision = 100
	// defaultCells is the default of Window.N.
	defaultCells = 60
	// MaxEntries bounds the state of a key: it is the largest Window.Precision,
	// Window.N and Limit.MaxHolds, and the largest Quota with measure [Distinct].
	MaxEntries = 10_000
)

// Sliding returns a window of the last d, at any moment. It is a log of the
// instants of the hits and never admits more than the quota. Above a quota of
// Window.Precision it can deny less than one group of hits early: by default less
// than 1 % of the quota.
func Sliding(d time.Duration) Window { return Window{Kind: KindSliding, Length: d} }

// Cells returns a window of the last d, at any moment, cut into n cells of d/n
// with one counter each; n = 0 means 60. Under a quota the oldest cell
// counts as a whole until all of it has left the window: no more than the quota
// is admitted, and at most the hits of one cell are denied early. With [Unlimited]
// the oldest cell counts in proportion to the part of it that is inside.
func Cells(d time.Duration, n int) Window { return Window{Kind: KindCells, Length: d, N: n} }

// Fixed returns a window that starts with the first hit and lasts d. The next one
// starts with the first hit after it. Up to twice the quota can pass across the
// end of a window.
func Fixed(d time.Duration) Window { return Window{Kind: KindFixed, Length: d} }

// Calendar returns a window of the current minute, hour, day, week, month or year
// in zone, where nil means UTC; see [Window.PeriodBounds].
func Calendar(p Period, zone *time.Location) Window {
	return Window{Kind: KindCalendar, Period: p, Zone: zone}
}

// Aligned returns a window that is one of those of length d that follow each other
// from the Unix epoch on: an aligned window of 30 days starts 1 January 1970 and
// every 30 days after that. d is at least a second. A calendar's month is
// [Calendar].
func Aligned(d time.Duration) Window { return Window{Kind: KindAligned, Length: d} }

// Bucket returns a window that holds at most burst hits and drains at the rate of
// the quota in d; burst = 0 means the quota. In any span t it admits at
// most burst + t·quota/d hits.
func Bucket(d time.Duration, burst int64) Window {
	return Window{Kind: KindBucket, Length: d, Burst: burst}
}

// Held returns a window that counts what is in flight. A take holds its hits until
// they are settled or cancelled, or until d after the take or its last renewal
// (see package store). Nothing of them remains afterwards. Hits without a hold
// are not counted.
func Held(d time.Duration) Window { return Window{Kind: KindHeld, Length: d} }

// Ever returns a window without an end: hits count until they are refunded or the
// key is forgotten. RetryAfter of hits that do not fit is [Never]. ResetAfter of a
// used key is [Never].
func Ever() Window { return Window{Kind: KindEver} }

// After is a condition of a limit: the limit starts with the Count-th hit in
// Window. Earlier hits are counted towards the condition, and never denied.
// Window cannot be a bucket. The zero value means no condition.
type After struct {
	Count  int64
	Window Window
}

// Limit declares a quota in a window. The zero value is invalid. [Compile]
// checks a Limit and makes it ready for use. A Limit is comparable.
type Limit struct {
	// Quota is the number of hits or members, or the sum of weights, that the
	// window admits, at most [MaxHits]. 0 admits nothing except a member that
	// Record has put into the window. [Unlimited] counts without a limit; only
	// cells, fixed, calendar, aligned and ever windows can, and not with measure [Distinct].
	Quota int64

	// Highest is the largest quota under which the same keys are counted, if the quota
	// depends on the request. A sliding window, and one with measure [Distinct], keeps as many
	// hits or members as that quota needs: a record under a smaller one forgets none of them.
	// At most [MaxHits]; 0, or less than Quota, means Quota.
	Highest int64

	// Measure is what the limit counts. Cells windows and buckets cannot count
	// [Distinct] members.
	Measure Measure

	Window Window

	// After is the condition under which the limit starts. A limit with
	// measure [Distinct] or quota [Unlimited] has none.
	After After

	// Hold is how long the hits of a take are held, if the take names a hold
	// (see package store). Held hits count in full until the hold is settled or
	// cancelled, or ends by itself. 0 means that takes do not hold. Hold must be 0
	// in a limit with a condition, with measure [Distinct] or with a [Held] window.
	Hold time.Duration

	// Release makes a hold that ends by itself, without a settle, count nothing any
	// more. Otherwise its hits go on counting as if it had been settled at what was
	// held.
	Release bool

	// MaxHolds is the highest number of holds of a key at the same time, at most
	// [MaxEntries]. Further takes are denied. 0 means 1000; in a held
	// window, 0 means the quota if that is larger. MaxHolds must be 0 in a limit
	// whose takes do not hold.
	MaxHolds int

	// Ban states for how long keys that go over the limit are banned.
	Ban Ban

	// Export makes states keep what was counted in the last period of a calendar or aligned window
	// ([Compiled.Exported]), and asks stores for the keys themselves.
	Export bool

	// Lease lets processes that share a store spend parts of the quota from their memory, if
	// their store leases (package leasestore): [LeaseStrict], or the number of hits that each of them may admit past
	// what it has leased. 0 means that the store decides each call, and so it does under limits that
	// cannot reserve ([Compiled.CanReserve]). It does not change what is counted.
	Lease int64
}

// LeaseStrict is the Lease of a limit that leases never exceed.
const LeaseStrict int64 = -1

// micros returns the length in microseconds.
func (w *Window) micros() int64 { return int64(w.Length / time.Microsecond) }

// Capacity returns the most hits that fit at once: the quota, a bucket's burst, or
// [Unlimited].
func (l *Limit) Capacity() int64 {
	if l.Window.Burst > 0 && l.Quota != 0 {
		return l.Window.Burst
	}
	return l.Quota
}

// OnCalendar reports whether l depends on the wall clock, because its window or the
// window of its condition is a calendar window or an aligned one.
func (l *Limit) OnCalendar() bool {
	return kinds[l.Window.Kind].onWall || l.After.Count > 0 && kinds[l.After.Window.Kind].onWall
}

// HoldLength returns how long a hold of l lasts without being renewed. It is 0 if takes
// under l do not hold: l has no Hold, and its window is not a [Held] one.
func (l *Limit) HoldLength() time.Duration {
	if l.Window.Kind == KindHeld {
		return l.Window.Length
	}
	return l.Hold
}

// WithDefaults returns l, which is valid, with the values that count for the settings
// that are 0 and have another default: Precision, N and Burst of its windows, MaxHolds
// of a limit whose takes hold, and Factor, Most and Forget of a ban.
func (l Limit) WithDefaults() Limit {
	if l.Window.Kind == KindBucket && l.Window.Burst == 0 {
		l.Window.Burst = l.Quota
	}
	l.Window.setDefaults()
	if l.After.Count > 0 {
		l.After.Window.setDefaults()
	}
	if l.HoldLength() > 0 {
		l.MaxHolds = l.maxHolds()
	}
	if b := &l.Ban; b.For > 0 {
		b.Factor, b.Most, b.Forget = max(b.Factor, 1), b.most(), b.forget()
	}
	return l
}

func (w *Window) setDefaults() {
	switch w.Kind {
	case KindSliding:
		w.Precision = int(w.precision())
	case KindCells:
		w.N = w.cells()
	}
}

// highest returns the largest quota under which the keys of l are counted.
func (l *Limit) highest() int64 { return max(l.Quota, l.Highest) }
