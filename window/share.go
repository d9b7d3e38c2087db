package window

// Share returns l with its quota, its burst and the count of its condition
// divided by nodes, rounded up. It is for one of several nodes that cannot reach
// their common store: together they admit the quota, plus less than one hit for
// each node because of the rounding. nodes must be at least 1.
//
// A share is for counting in memory only. The share of a bucket may need products
// above 2^53, which [Compile] refuses in other limits because the script
// of a store could not compute them exactly.
func (l *Compiled) Share(nodes int64) *Compiled {
	part := func(n int64) int64 {
		if n <= 0 { // unlimited, or unset
			return n
		}
		return (n-1)/nodes + 1
	}
	share := *l.Limit
	share.Quota, share.Window.Burst, share.After.Count = part(share.Quota), part(share.Window.Burst), part(share.After.Count)
	return compile(share, l.holds)
}

// WithQuota returns l with another quota, for rules whose quota comes with the request. The
// caller guarantees that [Compile] accepts the limit.
func (l *Compiled) WithQuota(quota int64) *Compiled {
	limit := *l.Limit
	limit.Quota = quota
	return compile(limit, l.holds)
}
