package replay

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/weirhq/weir/window"
)

// peaked is a key with its peak in one window.
type peaked struct {
	key      *sweptKey
	peak     int64
	peakAt   window.Instant
	requests int64
}

// report returns the numbers of window i.
func (s *sweeping) report(i, top int) Swept {
	w := s.windows[i]
	r := Swept{Window: describe(w.of), window: w.of, Suggested: -1, matched: s.matched, keys: int64(len(s.keys)), Candidates: make([]Candidate, len(s.quotas))}
	for c, q := range s.quotas {
		r.Candidates[c] = Candidate{
			Quota: q, Denied: w.denied[c], KeysDenied: w.keys[c],
			DeniedShare: share(w.denied[c], s.matched), KeysShare: share(w.keys[c], int64(len(s.keys))),
		}
	}
	all := make([]peaked, 0, len(s.keys))
	for _, k := range s.keys {
		all = append(all, peaked{k, k.windows[i].peak, k.windows[i].peakAt, k.requests})
	}
	slices.SortFunc(all, func(a, b peaked) int {
		return cmp.Or(cmp.Compare(a.peak, b.peak), cmp.Compare(b.key.name, a.key.name))
	})
	r.Peaks = peaksOf(all, s.quotas, top)
	s.suggest(&r, all)
	return r
}

func share(part, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// peaksOf returns the distribution of peaks, which are ascending.
func peaksOf(all []peaked, bounds []int64, top int) Peaks {
	p := Peaks{Bounds: slices.Clone(bounds), Keys: make([]int64, len(bounds)), Top: []Peak{}}
	if len(all) == 0 {
		return p
	}
	p.P50, p.P90, p.P99, p.P999 = percentile(all, 500), percentile(all, 900), percentile(all, 990), percentile(all, 999)
	p.Max = all[len(all)-1].peak
	if p.Max > bounds[len(bounds)-1] {
		p.Bounds, p.Keys = append(p.Bounds, p.Max), append(p.Keys, 0)
	}
	for _, k := range all {
		p.Keys[sort.Search(len(p.Bounds), func(i int) bool { return p.Bounds[i] >= k.peak })]++
	}
	for i := range min(max(top, 0), len(all)) {
		k := all[len(all)-1-i]
		p.Top = append(p.Top, Peak{k.key.name, k.peak, k.peakAt.Time(), k.requests})
	}
	return p
}

// fewKeys is the number of keys from which on one key may be denied, regardless of the share.
const fewKeys = 50

// percentile returns the smallest peak that thousandths of the keys do not exceed.
func percentile(all []peaked, thousandths int) int64 {
	at := (len(all)*thousandths + 999) / 1000
	return all[max(at, 1)-1].peak
}

// suggest chooses the smallest quota that denies no more than the stated share of
// keys, and states why.
func (s *sweeping) suggest(r *Swept, all []peaked) {
	if len(all) == 0 {
		r.Reason = "No request matches the rule."
		return
	}
	if s.matched == 0 {
		r.Reason = "Only records match the rule, which no quota denies."
		return
	}
	most := int64(s.share * float64(len(all)))
	if len(all) >= fewKeys {
		most = max(most, 1) // one attacker must not raise the limit for all
	}
	for i, c := range r.Candidates {
		if c.KeysDenied <= most {
			r.Suggested = i
			break
		}
	}
	if r.Suggested < 0 {
		last := r.Candidates[len(r.Candidates)-1]
		r.Reason = fmt.Sprintf("Each quota denies more than %s of the keys; the largest one, %d, denies %d of %d. Try larger quotas.",
			percentOf(s.share), last.Quota, last.KeysDenied, len(all))
		return
	}
	c := r.Candidates[r.Suggested]
	over, requests, highest := int64(0), int64(0), int64(0)
	for _, k := range all {
		if k.peak > c.Quota {
			over++
			requests += k.requests
		} else {
			highest = k.peak
		}
	}
	if over == 0 && c.Denied == 0 {
		r.Reason = fmt.Sprintf("No key exceeds %d in %s. The quota would have denied nothing.", highest, r.Window)
		return
	}
	keys, denied := "1 key exceeds", "1 request"
	if over != 1 {
		keys = fmt.Sprintf("%d keys exceed", over)
	}
	if c.Denied != 1 {
		denied = fmt.Sprintf("%d requests", c.Denied)
	}
	r.Reason = fmt.Sprintf("%s of the keys never exceed %d in %s. %s %d, with %s of the requests. The quota would have denied %s (%s).",
		percentOf(share(int64(len(all))-over, int64(len(all)))), highest, r.Window, keys, c.Quota,
		percent(requests, s.matched), denied, percent(c.Denied, s.matched))
}

// percentOf returns a share as text.
func percentOf(share float64) string {
	if share < 1 && share > 0.9999 {
		return "more than 99.99 %"
	}
	return strconv.FormatFloat(float64(int64(share*10000))/100, 'f', -1, 64) + " %"
}

// describe returns a window in words.
func describe(w window.Window) string {
	if w.Kind == window.KindCalendar {
		return "a " + w.Period.String()
	}
	text := window.Length(w.Length)
	if w.Kind != window.KindSliding {
		text = w.Kind.String() + " " + text
	}
	return text
}
