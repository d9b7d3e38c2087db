package respapi

import "errors"

// Scan finds the first command in a text. A command that is too large is an error.
func Scan(b []byte, _ [][]byte) (args [][]byte, n int, err error) {
	spans, n, skipped, err := scan(b, nil)
	if skipped != (rest{}) {
		return nil, 0, errors.New("too large")
	}
	for _, s := range spans {
		args = append(args, b[s.from:s.to])
	}
	return args, n, err
}

// MaxCommand is the most bytes of a command.
const MaxCommand = maxCommand

// Skip drops the rest of a command, which is the bytes of an argument, with the end of its line, and a number of
// arguments. It returns how many bytes of b these are, and what is left.
func Skip(b []byte, of [2]int) (n int, left [2]int, err error) {
	r := rest{of[0], of[1]}
	n, err = r.skip(b)
	return n, [2]int{r.bytes, r.arguments}, err
}
