package server

import (
	"log"
	"log/slog"
)

// ErrorLog returns the logger of an HTTP server.
func ErrorLog(to *slog.Logger) *log.Logger { return errorLog(to) }
