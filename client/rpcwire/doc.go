// Package rpcwire reads and writes the frequent messages of weir.v1: requests and
// decisions. Servers and clients in Go use it in place of the generated code, which
// takes more time and memory. api/weir/v1/weir.proto defines the messages; a fuzz test
// compares the two.
package rpcwire
