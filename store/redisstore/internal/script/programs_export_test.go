package script

// Programs returns the text of every program by its name.
func Programs() map[string]string {
	all := map[string]string{"peek": Peek().Text}
	var made programs
	for _, r := range recipes() {
		all[r.name()] = made.of(r).Text
	}
	return all
}

// EncodeFast returns what Encode does, and the general program that decides the
// same calls; ok reports whether Encode names a fast program.
func (c *Codec) EncodeFast(s *Step, t Times) (fast, general *Program, args string, ok bool) {
	b, program := c.appendStep(nil, s, t)
	r := recipeAt(program)
	slow := r
	if slow.fast = false; r.around { // there is no such program but here
		general = newProgram(0, slow.text())
		slow.run = true
		general.Run = newProgram(0, slow.text())
	} else {
		general = c.programs.of(slow)
	}
	return c.programs.of(r), general, string(b), r.fast
}

// FastAround returns the part of the program around that decides common calls. For
// all others it answers "slow".
func FastAround() *Program {
	var j joiner
	for _, name := range []string{"head", "begin", "around_begin", "around_fast"} {
		j.file(name)
	}
	j.WriteString("return 'slow'\n")
	return newProgram(0, j.String())
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
