package weir_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
)

// A front end may hand in text that is a view of a buffer which it uses again.
// What an engine keeps of a request, and the errors that it gives, are copies.
func TestKeepsNoTextOfARequest(t *testing.T) {
	t.Parallel()
	e := engine(t, `
lists: {staff: {values: [ann, bob]}}
rules:
  - {name: one, when: {user: "*"}, per: [user], limit: 3, window: 1h}
  - {name: two, when: {user: {match: "^a"}}, per: [user, from], limit: 3, window: day}
  - {name: peers, per: [user], distinct: peer, limit: 3, window: 1h}
  - {name: spent, per: [user], sum: cents, limit: 300, window: {bucket: 1h}}
  - {name: seen, when: {from: {ip: "fe80::/10"}, user: {in: staff}}, per: [from], window: 1h}
`)
	buffer := []byte("user ann from fe80::1%eth0 peer eve cents 5")
	request := func(hits int64, b []byte) weir.Request {
		var words []string
		for _, w := range bytes.Fields(b) {
			words = append(words, unsafe.String(unsafe.SliceData(w), len(w)))
		}
		return weir.Request{Attributes: weir.Attributes(words...), Hits: hits}
	}
	ask := func(cents string) error {
		b := bytes.Clone(buffer)
		if cents != "" {
			b = append(b[:len(b)-1], cents...)
		}
		defer func() {
			for i := range b {
				b[i] = 'X'
			}
		}()
		if _, err := e.Explain(t.Context(), request(1, b)); err != nil {
			return err
		}
		_, err := e.Take(t.Context(), request(1, b))
		return err
	}
	for range 3 {
		if err := ask(""); err != nil {
			t.Fatal(err)
		}
	}

	err := ask("five")
	var input *fault.Fault
	want := `weir: attributes.cents: rule spent: attribute "cents" is "five", want a whole number from 0 to 9007199254740991 (money: in cents)`
	if !errors.As(err, &input) || err.Error() != want {
		t.Errorf("error after the buffer was used again:\ngot  %v\nwant %s", err, want)
	}
	attributes := request(1, buffer).Attributes
	for rule, want := range map[string]int64{"one": 3, "two": 3, "peers": 1, "spent": 15, "seen": 3} {
		if u, err := e.Usage(t.Context(), rule, attributes); err != nil || u.Used != want {
			t.Errorf("%s after the buffer was used again: got %d used, %v, want %d", rule, u.Used, err, want)
		}
	}
	if d, err := e.Take(t.Context(), request(1, buffer)); err != nil || d.Allowed || d.Rule != "one" {
		t.Errorf("fourth take: got %+v, %v, want denied by one", d, err)
	}
}
