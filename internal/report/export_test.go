package report

import "github.com/weirhq/weir/window"

// Again decodes a note and encodes it again. It returns nil for a note that cannot be
// read.
func Again(data []byte) []byte {
	e := decode(data)
	if e == nil {
		return nil
	}
	return (&book{limits: make(map[*window.Compiled][]byte)}).encode(e)
}
