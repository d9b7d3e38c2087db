package window

// What most takes that hold meet is decided here at once, in a third of the time
// that look, hold and look again need.

// takeQuickly takes n hits, at least one, as takeAround does. It reports false, and
// changes nothing, where it cannot decide.
func (l *Compiled) takeQuickly(r *Result, s State, now Instant, n int64, id *HoldID) (State, bool) {
	switch {
	case l.places != nil && (len(s) == 0 || s[0] < heldMark):
		return l.places.take(r, s, now, n, *id)
	case l.logs != nil && (len(s) == 0 || isHeld(s)):
		return l.logs.take(r, s, now, n, *id)
	}
	return s, false
}

// take takes n hits, as takeAround does, if there is room for them and the key is
// unused or has holds of which none has ended or ends later than the new one. It
// leaves hits that have left the window where they are, for the next change that is
// not a take. It reports false, and changes nothing, in all other cases. FuzzHolds
// compares it with takeAround.
func (w *holding) take(r *Result, s State, now Instant, n int64, id HoldID) (State, bool) {
	if len(s) == 0 {
		return w.first(r, s, min(max(now, 0), lastInstant), n, id)
	}
	now = max(min(max(now, 0), lastInstant), Instant(s[2]))
	count := int(s[0] &^ heldMark)
	list, end := len(s)-holdWords*count, min(now+w.length, lastInstant)
	if list > holdHeader+w.log.loose() { // after a reload with a lower precision
		return s, false
	}
	if count >= w.most || count > 0 && (Instant(s[list]) <= now || Instant(s[len(s)-holdWords]) > end) {
		return s, false
	}
	length := Instant(w.log.length)
	used, expires := int64(s[1]), end
	if list > holdHeader {
		used += int64(s[holdHeader])
		for i := holdHeader + datedHeader; i < list && Instant(s[i]) <= now-length; i += pairWords {
			used -= int64(s[i+1])
		}
		expires = max(expires, Instant(s[list-pairWords])+length)
	}
	if n > w.capacity || used > w.capacity-n || used == 0 {
		return s, false // used == 0: the state may have expired
	}
	if w.keep != 0 {
		s[3] = uint64(now) + 1
	}
	if s[3] > 0 {
		expires = max(expires, Instant(s[3]-1)+length)
	}
	high, low := id.words()
	s[0]++
	s[1] += uint64(n)
	s[2] = uint64(now)
	s = append(s, uint64(end), uint64(now), uint64(n)|w.keep, high, low)
	r.Allowed, r.Held, r.Quota, r.Before, r.Used = true, true, w.capacity, used, used+n
	r.Remaining, r.ResetAfter = w.capacity-used-n, (expires - now).length()
	return s, true
}

// first takes the first n hits of an unused key.
func (w *holding) first(r *Result, s State, now Instant, n int64, id HoldID) (State, bool) {
	if n > w.capacity {
		return s, false
	}
	end, newest := min(now+w.length, lastInstant), uint64(0)
	expires := end
	if w.keep != 0 {
		newest = uint64(now) + 1
		expires = max(end, now+Instant(w.log.length))
	}
	high, low := id.words()
	s = append(s, heldMark|1, uint64(n), uint64(now), newest, uint64(end), uint64(now), uint64(n)|w.keep, high, low)
	r.Allowed, r.Held, r.Quota, r.Used = true, true, w.capacity, n
	r.Remaining, r.ResetAfter = w.capacity-n, (expires - now).length()
	return s, true
}

// take takes n hits, as takeAround does, if there is room for them and no place ends
// later than the new one. It reports false, and changes nothing, in all other cases.
func (w *held) take(r *Result, s State, now Instant, n int64, id HoldID) (State, bool) {
	now = min(max(now, 0), lastInstant)
	p := readPlaces(s)
	end := now + w.length
	if k := p.len(); k > 0 {
		last := p.end(k - 1)
		now = max(now, last-w.length)
		if end = now + w.length; last > end {
			return s, false
		}
	}
	first := p.live(now)
	used := p.used(first)
	if n > w.quota || used > w.quota-n || p.len()-first >= w.most || end > lastInstant {
		return s, false
	}
	p.drop(first)
	p.insert(place{end, placeBits(id), n})
	r.Allowed, r.Held, r.Quota, r.Before, r.Used = true, true, w.quota, used, used+n
	r.Remaining, r.ResetAfter = w.quota-used-n, w.length.length()
	return p.words, true
}
