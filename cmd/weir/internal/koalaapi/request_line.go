package koalaapi

import "bytes"

// appendRequestLine appends a request line that net/http accepts: what koala
// reads in line, in the form METHOD TARGET VERSION. koala takes any method and
// any version. A blank in the target belongs to it; koala cuts the target
// there, so that the parameters behind the blank are lost.
func appendRequestLine(out, line []byte) []byte {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version := rest, []byte(nil)
	if i := bytes.LastIndexByte(rest, ' '); i >= 0 {
		if version = rest[i+1:]; bytes.HasPrefix(version, []byte("HTTP/")) {
			target = bytes.Trim(rest[:i], " ")
		}
	} else {
		target = nil // koala knows no requests without a version
	}
	if len(method) == 0 || len(bytes.Trim(method, letters)) > 0 {
		method = []byte("GET")
	}
	out = appendTarget(append(append(out, method...), ' '), target)
	if string(version) == "HTTP/1.0" {
		return append(out, " HTTP/1.0\r\n"...)
	}
	return append(out, " HTTP/1.1\r\n"...)
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	inPaths = letters + "0123456789_-.~/"
)

// appendTarget appends target as a path and a query. A path that can be none of
// koala's becomes one that is not found.
func appendTarget(out, target []byte) []byte {
	path, query, asked := bytes.Cut(withoutHost(target), []byte("?"))
	if len(bytes.Trim(path, inPaths)) > 0 {
		path = nil
	}
	out = append(append(out, '/'), bytes.TrimPrefix(path, []byte("/"))...)
	if !asked {
		return out
	}
	out = append(out, '?')
	for _, b := range query {
		if b <= ' ' || b == 0x7f {
			const digits = "0123456789ABCDEF"
			out = append(out, '%', digits[b>>4], digits[b&0xf])
		} else {
			out = append(out, b)
		}
	}
	return out
}

// withoutHost returns target without http://HOST, which a client sends that
// takes weir for its proxy.
func withoutHost(target []byte) []byte {
	const scheme = "http://"
	if len(target) < len(scheme) || !is(target[:len(scheme)], scheme) {
		return target
	}
	target = target[len(scheme):]
	if i := bytes.IndexAny(target, "/?"); i >= 0 {
		return target[i:]
	}
	return nil
}
