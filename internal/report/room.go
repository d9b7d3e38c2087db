package report

import "github.com/weirhq/weir/window"

// room is what a table has of a namespace, as long as an engine or an entry of the namespace is there.
type room struct {
	engines int
	bans    map[string]window.Ban // of the rules in force, by the identity of the space
	amount
	whole *amount // of all namespaces
}

// amount is how many keys wait for reports or are in flight, and how much memory they have.
type amount struct{ keys, words int }

// room returns the room of a namespace.
func (t *table) room(namespace string) *room {
	in := t.rooms[namespace]
	if in == nil {
		in = &room{whole: &t.whole}
		t.rooms[namespace] = in
	}
	return in
}

// tidy drops the room of a namespace that needs none any more.
func (t *table) tidy(namespace string) {
	if in := t.rooms[namespace]; in.engines == 0 && in.keys == 0 {
		delete(t.rooms, namespace)
	}
}

func (in *room) add(keys, words int) {
	for _, a := range [...]*amount{&in.amount, in.whole} {
		a.keys += keys
		a.words += words
	}
}

// full reports whether a namespace has three times what is free, or more. So one alone has at most three quarters of all, two
// have three sevenths each, and there is room for a new one.
func (in *room) full() bool {
	full := func(has, taken, alone int) bool { return has >= 3*(alone+alone/3-taken) }
	return full(in.keys, in.whole.keys, MaxKeys) || full(in.words, in.whole.words, maxWords)
}

// enter counts e, which t is about to have.
func (t *table) enter(e *entry) {
	e.room = t.room(e.id.namespace)
	e.room.add(1, 0)
	e.resize()
}

// resize counts what e has become, if a table has it.
func (e *entry) resize() {
	const word, held = 8, 5 // bytes; words
	if e.room == nil {
		return
	}
	size := e.texts()/word + cap(e.state) + held*len(e.holds)
	e.room.add(0, size-e.words)
	e.words = size
}

// leave undoes enter.
func (t *table) leave(e *entry) {
	e.room.add(-1, -e.words)
	e.room, e.words = nil, 0
	t.tidy(e.id.namespace)
}
