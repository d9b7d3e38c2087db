package server

// LogChange returns the function that logs changes of a store's nodes.
var LogChange = logChange
