package ruletest

// Load reads a test file.
var Load = load
