package window

import "time"

// Kind is how hits age.
type Kind uint8

const (
	KindSliding  Kind = iota // a log of instants, in groups when the quota is large
	KindCells                // the window cut into cells, one counter each
	KindFixed                // starts with the first hit
	KindCalendar             // minute, hour, day, week, month, year in a time zone
	KindBucket               // a rate with a burst
)

// String returns the kind's name as rules files write it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "unknown"
}

// Measure is what of a request is counted.
type Measure uint8

const (
	Count    Measure = iota // hits
	Sum                     // hits that carry a weight
	Distinct                // members; one that is already inside is free
)

var measureNames = [...]string{"count", "sum", "distinct"}

// String returns the measure's name.
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

// Window is how hits age: a kind and its numbers. The zero value is invalid.
// Make one with [Sliding], [Cells], [Fixed], [Calendar] or [Bucket] and set the
// fields that differ. A Window is comparable and safe for concurrent use.
type Window struct {
	Kind Kind

	// Length is how long a hit stays inside, in whole microseconds. A calendar
	// window has a Period instead.
	Length time.Duration

	// Precision is the most groups that a sliding window keeps. The window is
	// exact up to a quota of that size. 0 means [DefaultPrecision].
	Precision int

	// N is the number of cells. 0 means [DefaultCells].
	N int

	// Burst is the most hits that a bucket admits at once. 0 means the quota.
	Burst int64

	// Period, Anchor and Zone define a calendar window. Anchor is the first day
	// of a week (1 Monday … 7 Sunday), or of a month (1 … 31, or the last day
	// of a shorter month). 0 means 1. A nil Zone means UTC.
	Period Period
	Anchor int
	Zone   *time.Location
}

const (
	// DefaultPrecision is the most groups of a sliding window by default.
	DefaultPrecision = 100
	// DefaultCells is the number of cells of a cells window by default.
	DefaultCells = 60
	// MaxPrecision, MaxCells and MaxMembers bound the state of one key.
	MaxPrecision = 10_000
	MaxCells     = 10_000
	MaxMembers   = 10_000
)

// Sliding returns a window that ends now and is d long.
func Sliding(d time.Duration) Window { return Window{Kind: KindSliding, Length: d} }

// Cells returns a window that ends now, is d long and is cut into n cells. 0
// means [DefaultCells].
func Cells(d time.Duration, n int) Window { return Window{Kind: KindCells, Length: d, N: n} }

// Fixed returns a window that starts with the first hit and lasts d.
func Fixed(d time.Duration) Window { return Window{Kind: KindFixed, Length: d} }

// Calendar returns the current minute, hour, day, week, month or year in zone.
func Calendar(p Period, zone *time.Location) Window {
	return Window{Kind: KindCalendar, Period: p, Zone: zone}
}

// Bucket returns a window that drains at the rate of the quota in d and admits
// at most burst hits at once. 0 means the quota.
func Bucket(d time.Duration, burst int64) Window {
	return Window{Kind: KindBucket, Length: d, Burst: burst}
}

// After is a condition: the limit counts from the Count-th hit in Window on.
// The zero value means no condition.
type After struct {
	Count  int64
	Window Window
}

// Limit declares a quota in a window. The zero value is invalid. [Compile]
// makes a Limit ready for use. A Limit is comparable and safe for concurrent
// use.
type Limit struct {
	// Quota is how many hits, weights or members are admitted. 0 admits none,
	// except a member that was recorded and is still inside. [Unlimited]
	// counts without a limit.
	Quota   int64
	Measure Measure
	Window  Window
	After   After
}

// micros returns the length in microseconds.
func (w *Window) micros() int64 { return int64(w.Length / time.Microsecond) }

// capacity returns the most hits that fit at once. Only a bucket has a burst.
func (l *Limit) capacity() int64 {
	if l.Window.Burst > 0 && l.Quota != 0 {
		return l.Window.Burst
	}
	return l.Quota
}
