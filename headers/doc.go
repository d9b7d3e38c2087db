// Package headers writes the state of limits, such as the hits that are left, into
// the header of an HTTP answer.
//
// # Servers
//
// [Limits] describes the limits that apply to one answer. [Limits.SetDecision]
// fills it from a decision of a [weir.Engine], and [Limits.SetResult] from the result
// of a [weir.Limiter]. A [Format] writes it in one of these dialects:
//
//	draft         RateLimit-Policy and RateLimit, and Retry-After
//	draft-03      RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, and Retry-After
//	legacy        X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, and Retry-After
//	legacy-epoch  as legacy, and X-RateLimit-Reset is a Unix time
//	retry-after   Retry-After
//	none          nothing
//
// draft is draft-ietf-httpapi-ratelimit-headers-10. A [Problem] is the body of a
// denial, with the problem types of this draft.
//
// If the store could not be asked for an answer, every dialect but none adds the
// header Weir-Degraded with the reason.
//
// # Clients
//
// Package ratelimit of the module client reads all of these dialects. It also has an
// [http.RoundTripper] that waits as long as a server asks for.
package headers
