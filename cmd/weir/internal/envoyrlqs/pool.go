package envoyrlqs

import "sync"

// pool counts the memory of the buckets of all streams. It is separate from that of requests, which clients of Envoy
// could otherwise use up, because they choose ids. Beyond its limit, the share that has most gives some up, so that nobody
// loses an equal part because of others. It is safe for concurrent use.
type pool struct {
	limit int64 // in bytes; 0: none

	mu     sync.Mutex
	bytes  int64             // guarded by mu
	shares map[string]*share // that have buckets, by [access.Holder.Share]; guarded by mu
}

// share is what the streams of some callers have of a pool, whose mu guards it.
type share struct {
	bytes    int64
	sessions map[*session]struct{} // that have buckets
}

func newPool(limit int64) *pool { return &pool{limit: limit, shares: map[string]*share{}} }

// add counts bytes of the buckets of s.
func (p *pool) add(s *session, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.shares[s.share]
	if of == nil {
		of = &share{sessions: map[*session]struct{}{}}
		p.shares[s.share] = of
	}
	of.sessions[s] = struct{}{}
	s.bytes += bytes
	of.bytes += bytes
	p.bytes += bytes
	if s.bytes == 0 {
		delete(of.sessions, s)
	}
	if of.bytes == 0 {
		delete(p.shares, s.share)
	}
}

// crowds reports whether s has to give up a bucket: the pool is over its limit, the share of s has most of it, and s has more
// than an equal part of what that share may have. If other sessions have to, it tells them, because
// they may not report for long.
func (p *pool) crowds(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 || p.bytes <= p.limit {
		return false
	}
	var most *share
	for _, of := range p.shares {
		if most == nil || of.bytes > most.bytes {
			most = of
		}
	}
	part := p.limit / int64(len(p.shares)) / int64(len(most.sessions)) // which one of them exceeds, as the pool does its limit
	if _, in := most.sessions[s]; in && s.bytes > part {
		return true
	}
	for other := range most.sessions {
		if other.bytes > part {
			select {
			case other.crowded <- struct{}{}:
			default:
			}
		}
	}
	return false
}
