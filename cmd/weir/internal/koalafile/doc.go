// Package koalafile reads two files of the rule service koala: its rule file, as a
// [rule.Set], and its main file. It reports all faults in a file at once, with their
// places. If weir decides differently from koala, a warning states what koala did and what
// weir does.
//
// A file has three sections, [dicts], [rules] and [result]. A rule becomes a
// rule with the name koala-<return code> and the return code as its Code. A
// result row becomes an outcome with the name koala-<row number>; its body is
// the row as koala writes it. The methods are:
//
//	direct   a verdict; the rules after it still count
//	count    a fixed window of `time` seconds; if `time` is 86400, the day in Shanghai
//	base     as count, but the limit starts with the hit number `base` of a day
//	leak     a sliding window that is exact up to a thousand hits
//
// A rule has one counter for each combination of the values of its keys. Keys with
// {~} are left out, and the others are in alphabetical order. Blanks around values
// are ignored. When the store cannot answer, a rule allows every request, as in
// koala.
//
// weir also implements what koala's documentation promised and koala did not
// do: CIDR blocks, IPv6, a * anywhere in an IPv4 address, several conditions on
// one key, {*} for {~}, key-IN-dict and key-NOTIN-dict. Keys and values may be
// any bytes, such as GBK text.
package koalafile
