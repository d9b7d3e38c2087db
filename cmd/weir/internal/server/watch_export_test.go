package server

import "time"

// Quiet waits as the watch of files does, and returns how long it took from a change
// until the files are read. stamp is asked for the state of the files.
func Quiet(stamp func() string) time.Duration {
	q := newCalm(stamp)
	<-q.due
	q.over()
	began := time.Now()
	q.wait()
	for {
		<-q.due
		if q.over() {
			return time.Since(began)
		}
	}
}
