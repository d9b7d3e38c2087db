// Package outbound keeps the requests that a program sends to other servers under a limit for each host,
// and slows down when a host asks for it.
//
//	client := &http.Client{Transport: outbound.PerHost(10, time.Second)}
//
// [Transport] sends each request once. To send a request again after the wait that a
// server states, put the Transport of package ratelimit of module client around it.
package outbound
