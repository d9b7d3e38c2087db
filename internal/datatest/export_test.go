package datatest

// Run returns a script with the output that f gives, and a message for each difference.
var Run = run
