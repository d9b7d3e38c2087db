// Package answer holds what the front ends share: the problem that an error
// becomes, the HTTP status of each error, and the reading of bodies. Each
// front end writes the decision itself in its own format. Package headers writes the
// limits of a decision into the header of an answer, and the body of a denial.
package answer
