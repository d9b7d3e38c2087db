package script

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/weirhq/weir/window"
)

// With each of these errors a server has answered, and nothing was counted.
var (
	// ErrStale is the error of a step that reached the server after its deadline.
	ErrStale = errors.New("the call came too late to the server")
	// ErrForeign is the error of a key that holds something else than a string.
	ErrForeign = errors.New("it is not weir's; delete it or use another prefix")
	// ErrCalendar is the error of a step whose calendar periods are not around the
	// server's instant. It is a [CalendarError].
	ErrCalendar = errors.New("the calendars of this machine and of the server differ")
)

// CalendarError is the error of an op that needs the periods around another
// instant. Its step succeeds when it is sent again with them. The instant is the
// server's, or a later one that the op's state has seen.
type CalendarError struct {
	Op int // its place in Which
	At window.Instant
}

// Error returns the text of [ErrCalendar].
func (e *CalendarError) Error() string { return ErrCalendar.Error() }

// Is reports whether target is [ErrCalendar].
func (e *CalendarError) Is(target error) bool { return target == ErrCalendar }

// KeyError is an error about one or several keys.
type KeyError struct {
	Key  string
	More int // keys, of which the error may be, too
	Err  error
}

// About returns err as an error about keys, which it does not keep.
func About(err error, keys ...string) *KeyError { return &KeyError{keys[0], len(keys) - 1, err} }

// Error returns the key, how many more there are, and the error.
func (e *KeyError) Error() string {
	if e.More == 0 {
		return fmt.Sprintf("key %q: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("key %q and %d more: %v", e.Key, e.More, e.Err)
}

// Unwrap returns the error without the keys.
func (e *KeyError) Unwrap() error { return e.Err }

// KeyText returns the part of the text that shows a key, for logs that must not.
func (e *KeyError) KeyText() string { return strconv.Quote(e.Key) }

// StateError is the error of a key whose state cannot be read: another program
// wrote it, or a newer version of this one.
type StateError struct {
	Key  string
	Head string // the first two bytes: version and kind
}

// Error returns the key, how its state begins, and what to do.
func (e *StateError) Error() string {
	return fmt.Sprintf("key %q holds no state that this version can read: it begins with %q; delete it or use another prefix", e.Key, e.Head)
}

// KeyText returns the part of the text that shows a key, for logs that must not.
func (e *StateError) KeyText() string { return strconv.Quote(e.Key) }

// around reports whether the state has holds or a ban around it.
func (e *StateError) around() bool {
	return isStateAround(e.Head)
}

// ServerError is the error that the server returned to one step of a batch.
type ServerError struct{ Text string }

// Error returns the server's text.
func (e *ServerError) Error() string { return e.Text }
