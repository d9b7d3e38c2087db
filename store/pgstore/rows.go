package pgstore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strings"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// row is the row of a key in a transaction.
type row struct {
	key    key
	op     *store.Op    // one of the key
	before []byte       // as the database has the state; empty: it has none
	state  window.State // with the capacity of its own memory
	limit  *window.Compiled
	err    error // why it is no counter
}

// rows are the rows of a batch, in the order of their keys.
type rows struct {
	all   []row
	ofOps []int32 // the row of each op of the batch
	reads bool    // no call counts
	now   window.Instant

	places []place        // scratch
	states []window.State // scratch
	text   []byte         // scratch
}

// place is the place of an op in a batch.
type place struct {
	key key
	n   int32
	op  *store.Op
}

// load makes rs the rows of a batch.
func (rs *rows) load(batch []*request) {
	rs.all, rs.places, rs.reads, rs.now = rs.all[:0], rs.places[:0], true, 0
	for _, r := range batch {
		rs.reads = rs.reads && r.reads
		for i, k := range r.keys {
			rs.places = append(rs.places, place{k, int32(len(rs.places)), &r.ops[i]})
		}
	}
	slices.SortFunc(rs.places, func(a, b place) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.n, b.n))
	})
	rs.ofOps = slices.Grow(rs.ofOps[:0], len(rs.places))[:len(rs.places)]
	for _, p := range rs.places {
		if n := len(rs.all); n == 0 || rs.all[n-1].key != p.key {
			rs.add(p.key, p.op)
		}
		rs.ofOps[p.n] = int32(len(rs.all) - 1)
	}
}

// keptWords is the most words of a state whose memory the next batch uses again.
const keptWords = 1024

// add adds a row, in the memory of one of an earlier batch if there is one.
func (rs *rows) add(k key, op *store.Op) {
	n := len(rs.all)
	if n == cap(rs.all) {
		rs.all = append(rs.all, row{key: k, op: op})
		return
	}
	rs.all = rs.all[:n+1]
	if old := &rs.all[n]; cap(old.state) <= keptWords {
		*old = row{key: k, op: op, before: old.before[:0], state: old.state[:0]}
	} else {
		*old = row{key: k, op: op}
	}
}

// epoch is the instant from which PostgreSQL counts microseconds: 2000-01-01.
const epoch = 946_684_800_000_000

// read uses one row of the server's answer: a key, its state and the time, of which the last one
// counts. It reports whether it was that of a key.
func (rs *rows) read(values [][]byte) bool {
	if len(values) != 3 {
		return false // of another statement
	}
	if len(values[2]) == 8 {
		rs.now = window.Instant(int64(binary.BigEndian.Uint64(values[2])) + epoch)
	}
	if values[0] == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(rs.all, values[0], func(r row, k []byte) int { return bytes.Compare(r.key[:], k) })
	if !found {
		return false // no server answers so
	}
	r := &rs.all[i]
	r.before = append(r.before[:0], values[1]...)
	var ok bool
	if r.state, ok = decode(r.state[:0], &r.key, values[1]); !ok {
		r.err = &stateError{r.key}
	}
	return true
}

// decide decides a request; of are the rows of its ops.
func (rs *rows) decide(r *request, of []int32, now window.Instant, members []byte) {
	if r.change != nil {
		w := &rs.all[of[0]]
		if r.reads && w.err != nil {
			r.calls[0].Err = w.err
			return
		}
		w.limit, w.err = r.ops[0].Limit, nil // a state that cannot be read is replaced
		w.state = r.change(w.state, now)
		return
	}
	hash := func(member []byte) uint64 {
		rs.text = append(append(rs.text[:0], members...), member...)
		digest := sha256.Sum256(rs.text)
		return binary.LittleEndian.Uint64(digest[:])
	}
	for i := range r.calls {
		c := &r.calls[i]
		if c.Err != nil {
			continue
		}
		rs.states = rs.states[:0]
		keys := len(c.Ops)
		if c.Once != nil {
			keys++
		}
		rows := of[:keys]
		of = of[keys:]
		var foreign []int
		for n, i := range rows {
			if rs.states = append(rs.states, rs.all[i].state); rs.all[i].err != nil {
				if n < len(c.Ops) {
					foreign = append(foreign, n)
				}
				c.Err = &store.OutageError{Ops: foreign, Reason: remote.Foreign, Err: rs.all[i].err, Uncounted: true}
			}
		}
		if c.Err != nil {
			continue
		}
		store.Decide(c, rs.states, func(*store.Op) window.Instant { return now }, hash)
		for n, i := range rows {
			w, op := &rs.all[i], c.Once
			if n < len(c.Ops) {
				op = &c.Ops[n]
			}
			w.state, w.limit = rs.states[n], op.Limit
		}
	}
}

// changed reports whether a row has to be written, and keeps those in the front.
func (rs *rows) changed() bool {
	if rs.reads {
		return false
	}
	n := 0
	for i := range rs.all {
		r := &rs.all[i]
		rs.text = encode(rs.text[:0], &r.key, r.state)
		if r.limit == nil || bytes.Equal(rs.text, r.before) {
			continue
		}
		r.before = append(r.before[:0], rs.text...)
		rs.all[n], rs.all[i] = rs.all[i], rs.all[n]
		n++
	}
	rs.all = rs.all[:n]
	return n > 0
}

// writes returns the parameters that write the rows.
func (rs *rows) writes(a *args) [][]byte {
	a.begin(oidBytes, len(rs.all))
	for i := range rs.all {
		a.value(rs.all[i].key[:])
	}
	a.begin(oidBytes, len(rs.all))
	for i := range rs.all {
		a.value(rs.all[i].before)
	}
	a.begin(oidInt8, len(rs.all))
	for i := range rs.all {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(rs.all[i].expires()))
		a.value(b[:])
	}
	return a.end()
}

// expires returns the instant from which the row can be deleted.
func (r *row) expires() int64 {
	if len(r.state) == 0 {
		return math.MinInt64
	}
	return int64(r.limit.Expires(r.state))
}

// maxName is the most bytes of the name of a row.
const maxName = 120

// nameOf returns the name of op's row, for people: the namespace, the name of the rule, and the
// key, whose parts are joined by commas, without what is no text.
func nameOf(op *store.Op) []byte {
	most := maxName
	if op.Limit != nil && op.Limit.Export {
		most = maxExportedName
	}
	name := asText(prefixOf(op) + readable(op.Key))
	return []byte(strings.ToValidUTF8(name[:min(len(name), most)], ""))
}

// asText returns text without what is no text.
func asText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '.'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// prefixOf returns what the names of rows of op's space begin with.
func prefixOf(op *store.Op) string {
	if ns := op.Space.Namespace(); ns != "" {
		return ns + "/" + op.Space.Name() + ":"
	}
	return op.Space.Name() + ":"
}

// readable returns the parts of a key with commas between them, or the key as it is.
func readable(key []byte) string {
	var parts []string
	for rest := key; len(rest) > 0; {
		part, after, ok := store.CutKey(rest)
		if !ok {
			return string(key)
		}
		parts, rest = append(parts, string(part)), after
	}
	return strings.Join(parts, ",")
}

// The form of a state in the database: a byte with the form's number, a checksum of the row's key
// and of what follows, and then for each word its difference to the word before, because the words of a
// state are instants and small numbers. The empty state is no bytes. Package window trusts its states, so
// one that was damaged, edited or copied from another row must not reach it: the checksum finds those.
const (
	stateForm = 1
	stateHead = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(k *key, words []byte) uint32 {
	return crc32.Update(crc32.Checksum(k[:], castagnoli), castagnoli, words)
}

// encode appends the state of a key to b, which is empty.
func encode(b []byte, k *key, s window.State) []byte {
	if len(s) == 0 {
		return b
	}
	b = append(b, stateForm, 0, 0, 0, 0)
	last := uint64(0)
	for _, w := range s {
		b = binary.AppendVarint(b, int64(w-last))
		last = w
	}
	binary.LittleEndian.PutUint32(b[1:], checksum(k, b[stateHead:]))
	return b
}

// decode appends the state of a key in b to s.
func decode(s window.State, k *key, b []byte) (window.State, bool) {
	if len(b) == 0 {
		return s, true
	}
	if len(b) < stateHead || b[0] != stateForm || binary.LittleEndian.Uint32(b[1:]) != checksum(k, b[stateHead:]) {
		return s, false
	}
	last := uint64(0)
	for b = b[stateHead:]; len(b) > 0; {
		d, n := binary.Varint(b)
		if n <= 0 {
			return s, false
		}
		last += uint64(d)
		s, b = append(s, last), b[n:]
	}
	return s, true
}

// The server's numbers of types.
const (
	oidBytes = 17
	oidInt8  = 20
)

// args builds the parameters of a statement: arrays in PostgreSQL's binary form.
type args struct {
	b      []byte
	starts []int
	values [][]byte
}

// keys returns the keys of rows as a parameter.
func (a *args) keys(rs *rows) []byte {
	a.begin(oidBytes, len(rs.all))
	for i := range rs.all {
		a.value(rs.all[i].key[:])
	}
	return a.end()[0]
}

// rows returns the keys and names of rows, as the parameters that make them.
func (a *args) rows(rs *rows) [][]byte {
	a.begin(oidBytes, len(rs.all))
	for i := range rs.all {
		a.value(rs.all[i].key[:])
	}
	a.begin(oidBytes, len(rs.all))
	for i := range rs.all {
		a.value(nameOf(rs.all[i].op))
	}
	return a.end()
}

// begin begins an array of n values, which follow.
func (a *args) begin(oid uint32, n int) {
	a.starts = append(a.starts, len(a.b))
	for _, v := range []uint32{1, 0, oid, uint32(n), 1} { // one dimension, no NULL, its type, its length, from 1
		a.b = binary.BigEndian.AppendUint32(a.b, v)
	}
}

func (a *args) value(v []byte) {
	a.b = append(binary.BigEndian.AppendUint32(a.b, uint32(len(v))), v...)
}

// end returns the arrays. They are valid until the next begin.
func (a *args) end() [][]byte {
	a.values = a.values[:0]
	for i, start := range a.starts {
		end := len(a.b)
		if i+1 < len(a.starts) {
			end = a.starts[i+1]
		}
		a.values = append(a.values, a.b[start:end])
	}
	a.b, a.starts = a.b[:0], a.starts[:0]
	return a.values
}
