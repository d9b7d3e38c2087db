package window

// An ever window has no end: hits stay until they are refunded or the key is
// forgotten. It is for things without a renewal: one trial a device, three vouchers
// an account.
//
// State: the number of hits.
type ever struct{ quota int64 }

// forever is an instant after every instant that a state can have.
const forever = Instant(1<<63 - 1)

func newEver(l *Limit) algorithm { return &ever{quota: l.Quota} }

func (w *ever) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	if len(s) > 0 {
		used = int64(s[0])
	}
	if h.N > 0 && w.quota != Unlimited && (h.N > w.quota || used > w.quota-h.N) {
		return used, never
	}
	return used, now
}

func (w *ever) add(s State, _ Instant, h Hits) State {
	if len(s) == 0 {
		return append(s, uint64(h.N))
	}
	s[0] = uint64(addHits(int64(s[0]), h.N))
	return s
}

func (w *ever) sub(s State, _, _ Instant, h Hits) State {
	if h.N >= int64(s[0]) {
		return s[:0]
	}
	s[0] -= uint64(h.N)
	return s
}

func (w *ever) expires(State) Instant { return forever }

// seen returns 0: all instants are the same.
func (w *ever) seen(State) Instant { return 0 }

func (w *ever) wordsAfter(State, Hits) int { return w.maxWords() }

func (w *ever) maxWords() int { return 1 }

func (w *ever) history(State, Instant, int64) ([]Cell, bool) { return nil, false }

func describeName(name string, _ *Window) string { return name }

func idOfEver(*Window) string { return "" }
