package respapi

// Scan finds the first command in a text.
var Scan = scan

// MaxCommand is the most bytes of a command.
const MaxCommand = maxCommand
