package envoyrls

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/fault"
)

// Numbers of fields in messages.
const (
	domainField, descriptorsField = 1, 2 // of a call
	entriesField                  = 1    // of a descriptor
	keyField, valueField          = 1, 2 // of an entry
)

// smallest is the size, in bytes, of the smallest message that can have too much for the
// memory that it takes: too many empty descriptors.
const smallest = 2 * maxDescriptors

// excess returns what a message has too much of, as [check] does, before memory is made
// for it: reading ten thousand descriptors takes milliseconds, and counting them does
// not. It returns nil for bytes that are no message.
func excess(b []byte) error {
	if len(b) < smallest {
		return nil
	}
	n, domain := 0, 0
	fields(b, func(number protowire.Number, value []byte) bool {
		switch number {
		case domainField:
			domain = len(value)
		case descriptorsField:
			n++
		}
		return true
	})
	switch {
	case domain > maxKey:
		return tooLong("domain", domain, maxKey)
	case n > maxDescriptors:
		return tooMany("descriptors", n, maxDescriptors)
	}
	var err error
	i := -1
	fields(b, func(number protowire.Number, value []byte) bool {
		if number == descriptorsField {
			i++
			err = excessOf(i, value)
		}
		return err == nil
	})
	return err
}

// excessOf returns what descriptor i has too much of.
func excessOf(i int, b []byte) error {
	n := 0
	fields(b, func(number protowire.Number, _ []byte) bool {
		if number == entriesField {
			n++
		}
		return true
	})
	if n > maxEntries {
		return tooMany(at(i, "entries"), n, maxEntries)
	}
	var err error
	k := -1
	fields(b, func(number protowire.Number, value []byte) bool {
		if number != entriesField {
			return true
		}
		k++
		fields(value, func(number protowire.Number, text []byte) bool {
			switch {
			case number == keyField && len(text) > maxKey:
				err = tooLong(at(i, fmt.Sprintf("entries[%d].key", k)), len(text), maxKey)
			case number == valueField && len(text) > maxValue:
				err = tooLong(at(i, fmt.Sprintf("entries[%d].value", k)), len(text), maxValue)
			}
			return err == nil
		})
		return err == nil
	})
	return err
}

// fields calls f for each field of b that has bytes, until f returns false or the rest of b is no
// message.
func fields(b []byte, f func(number protowire.Number, value []byte) bool) {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(number, kind, b); size < 0 {
				return
			}
			b = b[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(b)
		if size < 0 || !f(number, value) {
			return
		}
		b = b[size:]
	}
}

// tooMany and tooLong return the fault of a path with n things or bytes, more than most.
func tooMany(path string, n, most int) error {
	return fault.Newf(path, "are %d: want at most %d", n, most)
}

func tooLong(path string, n, most int) error {
	return fault.Newf(path, "has %d bytes: want at most %d", n, most)
}
