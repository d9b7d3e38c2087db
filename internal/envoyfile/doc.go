// Package envoyfile reads the rule files of envoyproxy/ratelimit, the reference
// service of Envoy's rate limit protocol. [Load] reads a directory of them as that
// service does. [Config.Match] finds the limit of a descriptor, and [Config.Set]
// has a rule for each limit, so that weir's engine counts. [Config.Native] writes
// weir's own rules, and tells which of them mean something else.
//
// What the files say and weir's rules do not - which wildcard comes first, which
// limit replaces another - is decided here, before the engine is asked.
package envoyfile
