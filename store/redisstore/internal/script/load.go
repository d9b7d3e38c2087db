package script

// Programs returns every program that decides steps.
func (c *Codec) Programs() []*Program {
	all := variants()
	programs := make([]*Program, len(all))
	for i, v := range all {
		programs[i] = c.programs.of(v)
	}
	return programs
}

// Expired returns an argument with a deadline that is past: every program of
// [Codec.Programs] answers that it came too late, or for a batch of no steps nothing,
// and touches no key. A server
// that runs a program with it has the program from then on.
func Expired() string { return string(append(put7[int64](nil, 0, 1), 0, 0, 0, 0)) }
