package main

import (
	"errors"
	"strconv"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// nodesFlag is the value of --nodes.
type nodesFlag struct{ nodes *int }

// String returns the value as the flag has it, empty when it is not set.
func (f nodesFlag) String() string {
	switch {
	case f.nodes == nil || *f.nodes == 0:
		return ""
	case *f.nodes == config.AutoNodes:
		return "auto"
	}
	return strconv.Itoa(*f.nodes)
}

// Set parses a value.
func (f nodesFlag) Set(text string) error {
	if text == "auto" {
		*f.nodes = config.AutoNodes
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want the number of instances, at least 1, or auto")
	}
	*f.nodes = n
	return nil
}

// Type returns what a value is, for the help.
func (nodesFlag) Type() string { return "number" }
