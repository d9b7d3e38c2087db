//go:build !unix

package trial

func behave() {}
