package plan

import (
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
)

// Request is one action, with its attributes at the positions that the rules use.
type Request struct {
	Verb store.Verb
	Hits int64 // at least 1

	// Feedback, in a refund, selects the hits that each rule gives back.
	// Empty: Hits.
	Feedback string

	// Values are the attributes, indexed as [ruleset.Compiled] describes.
	Values []string

	// ID is the id of the holds of a take. Zero: the take holds nothing, and does
	// not match rules whose windows are held.
	ID [12]byte

	// Receipt names the take that a settle, a cancel or a renewal is about. Exact
	// reports whether Hits is what a settle costs, and not a default.
	Receipt seal.Take
	Exact   bool

	// Key is the key of the receipt that the take gets, or has. It is kept between
	// requests.
	Key seal.Key
}

// Plan has the ops of one request. Its zero value is ready for use.
// A Plan can be used again; it then reuses its memory.
type Plan struct {
	Rules   *Rules
	Request Request

	// Matched are the indexes of the rules that match, ascending.
	Matched []int

	// Verdict is the first verdict among them, or -1.
	Verdict int

	// Now are the ops to be decided in one step, and Later those that wait for
	// the outcome of that step: those of rules after a verdict that allows, if a limit before it
	// may deny.
	Now, Later Ops

	keys  []byte       // keys and members of all ops, concatenated
	holds []store.Hold // of the ops
}

// Ops are ops and the rules that they belong to.
type Ops struct {
	// List has the ops. Invariant: the elements between its length and its capacity are zero,
	// so that an op is not cleared twice.
	List []store.Op

	Of []int // List[i] belongs to rule Of[i]; ascending
}

// add adds an empty op of rule i.
func (o *Ops) add(i int) *store.Op {
	n := len(o.List)
	o.Of = append(o.Of, i)
	if n < cap(o.List) {
		o.List = o.List[:n+1]
	} else {
		o.List = append(o.List, store.Op{})
	}
	return &o.List[n]
}

// Reset empties o and keeps its memory.
func (o *Ops) Reset() {
	for i := range o.List {
		op := &o.List[i] // clear would ask the garbage collector for each op
		*op = store.Op{}
	}
	o.List, o.Of = o.List[:0], o.Of[:0]
}

// Reset drops what p refers to and keeps its memory.
func (p *Plan) Reset() {
	for i := range p.Request.Values {
		value := &p.Request.Values[i] // as in Ops.Reset
		*value = ""
	}
	p.Request.Feedback, p.Request.ID, p.Request.Receipt = "", [12]byte{}, seal.Take{}
	p.Now.Reset()
	if len(p.Later.List) > 0 {
		p.Later.Reset()
	}
	p.Rules, p.keys = nil, p.keys[:0]
}
