package script

import (
	"slices"
	"sync"

	"github.com/weirhq/weir/window"
)

// StatusAdmitted is the status of replies with two numbers for each op.
const StatusAdmitted = statusAdmitted

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
	if slow := r; r.around {
		general = slowAround()
	} else {
		slow.fast = false
		general = c.programs.of(slow)
	}
	return c.programs.of(r), general, string(b), r.fast
}

// slowAround is the program around without the part that decides common calls, and its
// form for runs. There is no such program but here.
var slowAround = sync.OnceValue(func() *Program {
	slow := around
	slow.fast = false
	p := newProgram(0, slow.text())
	slow.run = true
	p.Run = newProgram(0, slow.text())
	return p
})

// FastAround returns the part of the program around that decides common calls. For
// all others it answers "slow".
var FastAround = sync.OnceValue(func() *Program {
	var j joiner
	for _, name := range []string{"head", "head_rest", "begin", "begin_time", "around_begin", "around_fast"} {
		j.file(name)
	}
	j.WriteString("return 'slow'\n")
	return newProgram(0, j.String())
})

// Whole returns the reply to s as a program without a fast part writes it.
func (r Reply) Whole(s *Step) string {
	text, now, form := r.Text, r.now, r.form
	switch {
	case form != 0:
	case len(text) >= replyHead && (text[0] == statusQuick || text[0] == statusAll || text[0] == statusAdmitted):
		text, now, form = text[replyHead:], window.Instant(get7(text[1:])), text[0]
	default:
		return text
	}
	own := *s
	own.Ops = slices.Clone(s.Ops)
	if err := quickResults(text, &own, now, form != statusAdmitted); err != nil {
		return err.Error()
	}
	b, size := put7([]byte{statusDone}, now), len(text)/len(own.Which)
	for n, i := range own.Which {
		result, numbers := own.Ops[i].Result, text[n*size:(n+1)*size]
		if form == statusAdmitted {
			b = put7(b, result.Used, result.Before, 0, getDouble(numbers[8:]))
		} else {
			b = put7(b, result.Used, result.Before, get7(numbers[7:]), get7(numbers[14:]))
		}
	}
	return string(b)
}

// Repeats returns the indexes that appendRepeats appends.
func Repeats(keys []string) []int {
	var all []int
	for b := appendRepeats(nil, keys); len(b) > 0; b = b[2:] {
		all = append(all, int(b[0])|int(b[1])<<8)
	}
	return all
}

// Rest returns what is left of the reply to a run.
func (r *Replies) Rest() string { return r.rest }
