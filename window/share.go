package window

// Share returns the part of l that one node keeps to while the nodes cannot
// reach their common store. Together the nodes admit the quota, plus less than
// one hit a node because shares are rounded up.
//
// A share is for counting in memory only. The products of a bucket's share can
// pass 2^53, which [Limit.Validate] refuses because a script could not compute
// them exactly.
func (l *Compiled) Share(nodes int64) *Compiled {
	part := func(n int64) int64 {
		if n <= 0 { // unlimited, or unset
			return n
		}
		return (n-1)/nodes + 1
	}
	share := l.limit
	share.Quota, share.Window.Burst, share.After.Count = part(share.Quota), part(share.Window.Burst), part(share.After.Count)
	return compile(share)
}
