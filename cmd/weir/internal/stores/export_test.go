package stores

// Rows is the table of stores.
var Rows = rows
