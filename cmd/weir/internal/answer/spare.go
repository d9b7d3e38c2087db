package answer

import "github.com/weirhq/weir"

// spareUsages is the maximum number of usages whose memory an item keeps for another decision.
const spareUsages = 4

// Spare empties items that were decided, and returns their memory for the next ones of the same
// connection, or nil if there is room for more than most. An emptied item takes about 1 KiB, and
// refers to no text that a caller has sent.
func Spare(items []weir.Item, most int) []weir.Item {
	if cap(items) > most {
		return nil
	}
	for i := range items {
		var d weir.Decision
		if usages := items[i].Decision.Usages; cap(usages) <= spareUsages {
			usages = usages[:cap(usages)]
			clear(usages)
			d.Usages = usages[:0]
		}
		items[i] = weir.Item{Decision: d}
	}
	return items[:0]
}
