package httpapi

import "github.com/weirhq/weir"

// Decode reads body as one request. Its error is line:column: field: problem.
func Decode(body []byte) (weir.Request, error) {
	var s scanner
	var req weir.Request
	if _, f := s.decode(body, weir.Take, &req); f != nil {
		return weir.Request{}, f
	}
	return req, nil
}
