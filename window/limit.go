package window

import "time"

// Kind says how hits age.
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

// Measure says what of a request is counted.
type Measure uint8

const (
	Count    Measure = iota // hits
	Sum                     // hits that carry a weight
	Distinct                // members; one that is already inside is free
)

var measureNames = [...]string{"count", "sum", "distinct"}

// String is the measure's name.
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

// String is the period's name as rules files write it.
func (p Period) String() string { return name(periodNames[:], int(p)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

// Window says how hits age. Its zero value is not usable; make one with
// [Sliding], [Cells], [Fixed], [Calendar] or [Bucket] and set what differs.
// It is a comparable value and safe for concurrent use.
type Window struct {
	Kind Kind

	// Length is how long a hit stays inside, a whole number of microseconds.
	// Not for calendar windows.
	Length time.Duration

	// Precision is how many groups a sliding window keeps at most: up to
	// this quota it is exact. 0 means [DefaultPrecision].
	Precision int

	// N is the number of cells. 0 means [DefaultCells].
	N int

	// Burst is the most hits a bucket admits at once. 0 means the quota.
	Burst int64

	// Period, Anchor and Zone shape a calendar window. Anchor is the day a
	// week starts on (1 Monday … 7 Sunday) or the day of the month a month
	// starts on (1 … 31, the last day in shorter months); 0 means 1. A nil
	// Zone is UTC.
	Period Period
	Anchor int
	Zone   *time.Location
}

const (
	// DefaultPrecision is the number of groups of a sliding window.
	DefaultPrecision = 100
	// DefaultCells is the number of cells of a cells window.
	DefaultCells = 60
	// MaxPrecision, MaxCells and MaxMembers bound the state of one key.
	MaxPrecision = 10_000
	MaxCells     = 10_000
	MaxMembers   = 10_000
)

// Sliding is a window that ends now and is d long.
func Sliding(d time.Duration) Window { return Window{Kind: KindSliding, Length: d} }

// Cells is a sliding window of length d cut into n cells; n = 0 means 60.
func Cells(d time.Duration, n int) Window { return Window{Kind: KindCells, Length: d, N: n} }

// Fixed is a window that starts with the first hit and lasts d.
func Fixed(d time.Duration) Window { return Window{Kind: KindFixed, Length: d} }

// Calendar is the current minute, hour, day, week, month or year in zone.
func Calendar(p Period, zone *time.Location) Window {
	return Window{Kind: KindCalendar, Period: p, Zone: zone}
}

// Bucket refills by the quota in d and admits at most burst hits at once;
// burst = 0 means the quota.
func Bucket(d time.Duration, burst int64) Window {
	return Window{Kind: KindBucket, Length: d, Burst: burst}
}

// After makes a limit count only from the Count-th hit in Window on. The zero
// value is no condition.
type After struct {
	Count  int64
	Window Window
}

// Limit is a quota in a window. Its zero value is refused by
// [Limit.Validate]; the other methods ask for a limit that Validate accepts.
// It is a comparable value, and its methods are safe for concurrent use.
type Limit struct {
	// Quota is how many hits, weights or members are admitted; 0 admits none,
	// but for a member that was recorded and is still inside. [Unlimited]
	// counts without a limit.
	Quota   int64
	Measure Measure
	Window  Window
	After   After
}

func (w *Window) micros() int64 { return int64(w.Length / time.Microsecond) }

// capacity returns the most hits that fit at once. Only a bucket has a burst.
func (l *Limit) capacity() int64 {
	if l.Window.Burst > 0 && l.Quota != 0 {
		return l.Window.Burst
	}
	return l.Quota
}
