//go:build !unix

package redistest

import "os"

// There are no signals that stop a process and continue it.
var stopSignal, continueSignal os.Signal
