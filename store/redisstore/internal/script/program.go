package script

import (
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"sync/atomic"
)

// Program is a script: its text, and the hash by which a server finds it.
type Program struct {
	Text, SHA string
	Number    int      // of the programs that decide calls, below [Numbers]
	Batch     *Program // decides several steps of this program, or nil
}

func newProgram(number int, text string) *Program {
	sum := sha1.Sum([]byte(text))
	return &Program{Text: text, SHA: hex.EncodeToString(sum[:]), Number: number}
}

// Numbers is above the numbers of all programs.
const Numbers = perKind * (int(maxCode) + 1)

// programs holds the programs that were needed so far. The zero value is ready;
// it is safe for concurrent use.
type programs struct {
	made [Numbers]atomic.Pointer[Program]
}

// of returns the program that v names.
func (p *programs) of(v variant) *Program { return p.at(v.index()) }

// at returns the program with an index, and makes it on first use.
func (p *programs) at(i int) *Program {
	if made := p.made[i].Load(); made != nil {
		return made
	}
	v := variantAt(i)
	program := newProgram(i, v.text())
	if batch := v; !v.refund && !v.batch {
		batch.batch = true
		program.Batch = p.of(batch)
	}
	p.made[i].Store(program)
	return program
}

// Peek returns the program that reads all that is kept for a key: the state's
// key, that of its sorted set, and that of its hash.
var Peek = sync.OnceValue(func() *Program {
	var a assembler
	a.file("peek")
	return newProgram(0, a.String())
})
