// Package xtime compares weir's package compat/rate with golang.org/x/time/rate, whose API
// it has. It consists of tests: the same cases run on both.
package xtime
