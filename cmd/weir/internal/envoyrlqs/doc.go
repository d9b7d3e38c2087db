// Package envoyrlqs serves Envoy's Rate Limit Quota Service, version 3: Envoy decides requests by assignments, which are
// parts of quotas, and reports what it has admitted. docs/guides/envoy.md describes it to its users.
//
// A bucket is a request, whose attributes are the entries of its id and the domain. An assignment is a
// reservation in the store ([run.Assignment]): a token bucket that is never refilled, with a time to live. Each
// differs from the one before, so that Envoy replaces that, and then the rest of that is void.
//
// # When an assignment is settled
//
// A reservation may be settled only after the last of its hits, and with all of them. Envoy does not tell when it replaces an assignment,
// and reports cross assignments on the way. So the package assumes that an assignment and the next report take no longer than [travel]
// together: a report that arrives later than that after an assignment was sent has all hits of those before it, and they are settled. Reported hits belong to
// the oldest assignment that has any left. That moves hits to an instant not before they were admitted, because all of
// them were reported before the settle. An assignment that was reported in full, with all before it, is settled at once, because nothing of it is left. A reservation lasts longer than its assignment by [travel]. Of one that
// has ended every hit counts in the store, so what is reported later is not taken from it.
//
// # Where it is inexact
//
// Hits of an assignment that was on its way for longer than [travel] may be spent after the end of the reservation. Hits that Envoy admits without
// an assignment are recorded when they are reported, past the quota. Hits that Envoy has not reported when it abandons a bucket are
// missing in rules without a limit. After a stream has ended, what was assigned counts in full, and what
// Envoy reports of it on the next stream counts again.
package envoyrlqs
