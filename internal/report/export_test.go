package report

import "github.com/weirhq/weir/window"

// Again decodes a blob and encodes it again. It returns nil for a blob that cannot be
// read.
func Again(data []byte) []byte {
	e := decoder{}.decode(data)
	if e == nil {
		return nil
	}
	return (&saver{limits: make(map[*window.Compiled][]byte)}).encode(e)
}

// Namespaces returns how many namespaces r has something of.
func Namespaces(r *Reporter) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.table.rooms)
}
