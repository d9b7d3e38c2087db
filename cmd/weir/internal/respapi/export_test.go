package respapi

// Scan finds the first command in a text.
func Scan(b []byte, _ [][]byte) (args [][]byte, n int, err error) {
	spans, n, err := scan(b, nil)
	for _, s := range spans {
		args = append(args, b[s.from:s.to])
	}
	return args, n, err
}

// MaxCommand is the most bytes of a command.
const MaxCommand = maxCommand
