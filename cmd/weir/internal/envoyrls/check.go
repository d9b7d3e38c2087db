package envoyrls

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Resource limits of one call.
const (
	maxDescriptors = 1000
	maxEntries     = 64
	maxKey         = 1 << 10 // bytes, of the domain and of a key

	// maxValue is in bytes, for values that weir's rules use. A longer one is denied.
	maxValue = 8 << 10
)

// check returns the fault of a call, as a [*fault.Fault] with its path. It is one of the proxy's configuration.
// The values come from the proxy's clients, and are no reason for an error: the proxy may let pass
// what gets an error, so that a client could escape all limits.
func check(in *request) error {
	switch n := len(in.descriptors); {
	case in.domain == "":
		return fault.Newf("domain", "is missing")
	case len(in.domain) > maxKey:
		return tooLong("domain", len(in.domain), maxKey)
	case n == 0:
		return fault.Newf("descriptors", "are missing: want at least one")
	case n > maxDescriptors:
		return tooMany("descriptors", n, maxDescriptors)
	}
	for i := range in.descriptors {
		if err := checkDescriptor(i, &in.descriptors[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkDescriptor(i int, d *descriptor) error {
	switch n := len(d.entries); {
	case n == 0:
		return fault.Newf(at(i, "entries"), "are missing: want at least one")
	case n > maxEntries:
		return tooMany(at(i, "entries"), n, maxEntries)
	}
	for k := range d.entries {
		e := &d.entries[k]
		switch {
		case e.Name == "":
			return fault.Newf(at(i, fmt.Sprintf("entries[%d].key", k)), "is missing")
		case len(e.Name) > maxKey:
			return tooLong(at(i, fmt.Sprintf("entries[%d].key", k)), len(e.Name), maxKey)
		}
	}
	if d.hits > uint64(window.MaxHits) {
		return fault.Newf(at(i, "hits_addend"), "%d: want at most %d", d.hits, window.MaxHits)
	}
	return nil
}

// at returns the path of a field of descriptor i.
func at(i int, field string) string { return fmt.Sprintf("descriptors[%d].%s", i, field) }

// hitsOf returns the hits of a descriptor: its own, or those of the call, or 1. It
// reports whether they are 0, which makes the descriptor a check.
func hitsOf(in *request, d *descriptor) (hits int64, check bool) {
	if d.ownHits {
		return int64(d.hits), d.hits == 0 //nolint:gosec // checked
	}
	return max(int64(in.hits), 1), false
}

// tooMany and tooLong return the fault of a path with more than most elements or bytes.
func tooMany(path string, n, most int) error {
	return fault.Newf(path, "are %d: want at most %d", n, most)
}

func tooLong(path string, n, most int) error {
	return fault.Newf(path, "has %d bytes: want at most %d", n, most)
}

// Numbers of fields in messages.
const (
	descriptorsField = 2 // of a call
	entriesField     = 1 // of a descriptor
	valueField       = 2 // of an entry
)

// texts lead to the values of entries.
var texts = []protowire.Number{descriptorsField, entriesField, valueField}

// smallest is the size, in bytes, of the smallest message that can exceed a limit: one with too
// many empty descriptors.
const smallest = 2 * maxDescriptors

// excess returns the fault of a message that exceeds a limit, as [check] does, and otherwise the
// number of its objects. It runs before decoding, because decoding ten thousand descriptors takes
// milliseconds, and counting them does not.
func excess(b []byte) (objects int, err error) {
	if len(b) < smallest {
		return 0, nil
	}
	if n := grpcserver.Count(b, descriptorsField); n > maxDescriptors {
		return 0, tooMany("descriptors", n, maxDescriptors)
	}
	i := 0
	for d := range grpcserver.Submessages(b, descriptorsField) {
		n := grpcserver.Count(d, entriesField)
		if n > maxEntries {
			return 0, tooMany(at(i, "entries"), n, maxEntries)
		}
		i, objects = i+1, objects+1+n
	}
	return objects, nil
}
