//go:build !linux

package measure

import "time"

// threadTime counts the thread as always running: only Linux has the numbers.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// pause sleeps until turn.
func pause(turn time.Time) { time.Sleep(time.Until(turn)) }
