package logs

// Quick is the reader of the most common form of times.
var Quick = quick
