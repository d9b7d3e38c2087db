// Package koala reads the rule file of koala, the rule service, as an
// ordinary [rule.Set], and koala's own main file. What is wrong in a file is
// told all at once, with its place; where weir decides otherwise than koala
// did, a warning says what koala did and what weir does.
//
// A file has three sections, [dicts], [rules] and [result]. A rule becomes a
// rule called koala-<return code>, a result row an outcome called
// koala-<row number> whose body is the row as koala writes it:
//
//	direct   a verdict; the rules behind it go on counting
//	count    a fixed window of `time` seconds; with 86400 the day in Shanghai
//	base     as count, but only from the hit of a day on that reaches `base`
//	leak     a sliding window that is exact up to a thousand hits
//
// The counters of a rule are apart by the values of its keys, in alphabetical
// order of the keys; keys with {~} are left out. Blanks around values do not
// count. A rule lets everything pass while its store is out of reach, as koala
// did.
//
// What koala's documentation promised and koala did not do, weir does: CIDR
// blocks, IPv6, a * anywhere in an IPv4 address, several conditions on one key,
// {*} for {~}, key-IN-dict and key-NOTIN-dict. Keys and values are any bytes,
// so that a file in GBK is read too.
package koala
