package httpapi

import (
	"time"

	"github.com/weirhq/weir"
)

// Decode reads body as one request. Its error is line:column: field: problem.
func Decode(body []byte) (weir.Request, error) {
	var s scanner
	var req weir.Request
	if _, f := s.decode(body, weir.Take, &req); f != nil {
		return weir.Request{}, f
	}
	return req, nil
}

// AppendText and AppendSeconds are how the API writes text and durations.
func AppendText(b []byte, s string) []byte           { return appendText(b, s) }
func AppendSeconds(b []byte, d time.Duration) []byte { return appendSeconds(b, d) }
