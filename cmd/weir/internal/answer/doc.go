// Package answer has what the front ends share: the problem and the HTTP status of each error, the
// reading of bodies, and rules and changes as JSON, which the command line reads. Each front end writes
// decisions in its own format. Package headers writes the limits of a decision into the header of an
// answer, and the body of a denial.
package answer
