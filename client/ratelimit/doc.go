// Package ratelimit reads the limits that an HTTP answer states, and waits as long as a server asks
// for.
//
// [Parse] returns the limits of an answer of weir's service and middleware, and of other
// servers, in the types of package headers, which writes them. A [Transport] sends a
// request again after the wait that the server states.
package ratelimit
