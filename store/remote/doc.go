// Package remote has what the stores on servers share: the time-out of a decision, the circuit breaker
// of a server, the counts of its outages, the secret of receipts, and what a check of a server finds. It is for
// the authors of stores. Programs need [WithTimeout] of it.
package remote
