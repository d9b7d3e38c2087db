package outbound

// Hosts returns the number of hosts that t remembers.
func (t *Transport) Hosts() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hosts)
}
