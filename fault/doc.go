// Package fault has the validation errors of what a person wrote: a rules file, a configuration, a
// request, a limit in a program.
//
// Each [Fault] names the field, the problem and, in a file, the place. Several
// of them are a [List]. Both are errors; [Of] returns the faults in any error
// that joins or wraps them. [DidYouMean] suggests a name for a word that is not
// known.
package fault
