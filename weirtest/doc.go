// Package weirtest helps to test programs that use weir. A [Store] counts in memory as
// [memstore.Store] does; it denies, fails or answers late when a test asks for it, and
// knows what was taken:
//
//	s := weirtest.NewStore()
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithStore(s), weir.WithName("posts"))
//	s.Deny(time.Minute, "posts", "ann") // ann is denied for a minute, without five posts
//	…                                   // what the test is about
//	s.AssertTaken(t, 1, "posts", "bob")
//
// Windows pass in no time under [testing/synctest]. Package storetest tests stores, and
// package ruletest of module rulefile tests rules.
package weirtest
