package wire

// SuccessorIn is successorIn.
var SuccessorIn = successorIn
