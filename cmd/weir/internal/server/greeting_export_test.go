package server

// CommitOf is commitOf.
var CommitOf = commitOf
