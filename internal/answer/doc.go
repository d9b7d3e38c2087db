// Package answer holds what the front ends share: the problem that an error
// becomes, the HTTP status of each error, the RateLimit headers of a decision,
// and text and durations as JSON. Each front end writes the decision itself in its
// own format.
package answer
