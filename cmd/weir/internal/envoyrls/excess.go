package envoyrls

import "github.com/weirhq/weir/cmd/weir/internal/grpcserver"

// Numbers of fields in messages.
const (
	descriptorsField = 2 // of a call
	entriesField     = 1 // of a descriptor
)

// smallest is the size, in bytes, of the smallest message that can have too much for the
// memory that it takes: too many empty descriptors.
const smallest = 2 * maxDescriptors

// excess returns what a message has too many of, as [check] does, before it is decoded, and
// how many objects it has otherwise: decoding ten thousand descriptors takes milliseconds,
// and counting them does not.
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
