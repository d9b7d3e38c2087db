//go:build !attack

package main

// attackers is a program that only make attack has.
func attackers() { panic("built without the tag attack") }
