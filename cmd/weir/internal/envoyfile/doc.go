// Package envoyfile reads the rule files of envoyproxy/ratelimit, the reference
// service of Envoy's rate limit protocol. [Load] reads a directory of them as that
// service does. [Config.Match] finds the limit of a descriptor, and [Config.Set]
// holds a rule for each limit, so that weir's engine can count. [Config.Native] writes
// weir's own rules, and reports which of them have another meaning.
//
// Two properties of the files have no counterpart in weir's rules: the precedence of
// wildcards, and limits that replace others. This package decides them before the engine is
// called.
package envoyfile
