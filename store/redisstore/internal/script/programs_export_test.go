package script

// Programs returns the text of every program by its name.
func Programs() map[string]string {
	all := map[string]string{"peek": Peek().Text}
	for _, r := range recipes() {
		all[r.name()] = r.text()
	}
	return all
}

// EncodeFast returns what Encode does, and the general program that decides the
// same calls; ok reports whether Encode names a fast program.
func (c *Codec) EncodeFast(s *Step, t Times) (fast, general *Program, args string, ok bool) {
	b, r := c.appendStep(nil, s, t)
	slow := r
	slow.fast = false
	return c.programs.of(r), c.programs.of(slow), string(b), r.fast
}

// Whole returns the reply as a program for one step writes it.
func (r Reply) Whole() string {
	if r.now == 0 {
		return r.Text
	}
	return string(put7([]byte{statusDone}, r.now)) + r.Text
}

// Rest returns what is left of the reply to a run.
func (r *Replies) Rest() string { return r.rest }
