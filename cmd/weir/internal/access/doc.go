// Package access authenticates callers: by tokens with scopes and by client certificates. It limits
// the rate of wrong tokens. It also loads the
// certificates of listeners. All front ends use it, so that one tokens file
// serves them all.
//
// A [Keys] has the tokens in force. An [Authenticator] protects one listener: it looks up the caller in
// Keys, and compares the caller's scopes with those that a call needs.
package access
