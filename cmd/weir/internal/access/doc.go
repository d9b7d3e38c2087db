// Package access decides who may call the service: tokens with scopes, client
// certificates, and the slowing down of wrong tokens. It also loads the
// certificates of listeners. All front ends use it, so that one tokens file
// serves them all.
//
// A [Keys] holds the tokens in force. An [Authenticator] guards one listener: it asks Keys
// who a caller is, and compares the caller's scopes with those that a call needs.
package access
