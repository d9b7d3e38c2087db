package respapi

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
)

// replies collects the replies to a batch.
type replies struct {
	b     []byte
	three bool // RESP3
}

// reuse empties r for the next batch. It keeps little memory.
func (r *replies) reuse() {
	if cap(r.b) > maxSpareRead {
		r.b = nil
	}
	r.b = r.b[:0]
}

// simple appends a Simple String, which has no line break.
func (r *replies) simple(text string) {
	r.b = append(append(append(r.b, '+'), text...), "\r\n"...)
}

// fail appends an error. text starts with the kind of the error, such as ERR.
func (r *replies) fail(text string) {
	r.b = append(r.b, '-')
	if strings.ContainsAny(text, "\r\n") {
		text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	}
	r.b = append(append(r.b, text...), "\r\n"...)
}

func (r *replies) length(kind byte, n int) {
	r.b = append(strconv.AppendInt(append(r.b, kind), int64(n), 10), "\r\n"...)
}

// integer appends an Integer.
func (r *replies) integer(n int64) {
	r.b = append(strconv.AppendInt(append(r.b, ':'), n, 10), "\r\n"...)
}

// bulk appends a Bulk String. It returns r, for the value behind the name of a field.
func (r *replies) bulk(text string) *replies {
	r.length('$', len(text))
	r.b = append(append(r.b, text...), "\r\n"...)
	return r
}

// array starts an Array of n elements.
func (r *replies) array(n int) { r.length('*', n) }

// fields starts a Map of n pairs, which in RESP2 is an Array of 2n elements.
func (r *replies) fields(n int) {
	if r.three {
		r.length('%', n)
	} else {
		r.length('*', 2*n)
	}
}

// boolean appends a Boolean, which in RESP2 is the Integer 1 or 0.
func (r *replies) boolean(is bool) {
	switch {
	case r.three && is:
		r.b = append(r.b, "#t\r\n"...)
	case r.three:
		r.b = append(r.b, "#f\r\n"...)
	case is:
		r.integer(1)
	default:
		r.integer(0)
	}
}

// seconds appends a duration in seconds, as a Double or, in RESP2, as a Bulk String, and
// -1 for never.
func (r *replies) seconds(d time.Duration) {
	var room [32]byte
	text := jsontext.AppendSeconds(room[:0], d)
	if r.three {
		r.b = append(append(append(r.b, ','), text...), "\r\n"...)
		return
	}
	r.length('$', len(text))
	r.b = append(append(r.b, text...), "\r\n"...)
}

// null appends a null.
func (r *replies) null() {
	if r.three {
		r.b = append(r.b, "_\r\n"...)
	} else {
		r.b = append(r.b, "$-1\r\n"...)
	}
}
