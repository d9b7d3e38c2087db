package weir_test

import (
	"bytes"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A front end may hand in text that is a view of a buffer which it uses again.
// What an engine keeps of a request, and the errors that it gives, are copies.
func TestKeepsNoTextOfARequest(t *testing.T) {
	t.Parallel()
	staff, err1 := rule.In("staff", []string{"ann", "bob"})
	fromA, err2 := rule.Pattern("^a")
	linkLocal, err3 := rule.Address("fe80::/10")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	e := engine(t, []rule.Rule{
		{Name: "one", When: []rule.Condition{{Attribute: "user", Test: rule.Present()}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
		{Name: "two", When: []rule.Condition{{Attribute: "user", Test: fromA}}, Per: []string{"user", "from"}, Quota: &rule.Quota{Value: 3}, Window: window.Calendar(window.Day, nil)},
		{Name: "peers", Per: []string{"user"}, Measure: window.Distinct, Of: "peer", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
		{Name: "spent", Per: []string{"user"}, Measure: window.Sum, Of: "cents", Quota: &rule.Quota{Value: 300}, Window: window.Bucket(time.Hour, 0)},
		{Name: "seen", When: []rule.Condition{{Attribute: "from", Test: linkLocal}, {Attribute: "user", Test: staff}}, Per: []string{"from"}, Window: window.Sliding(time.Hour)},
	})
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
		if _, _, err := e.Explain(t.Context(), request(1, b)); err != nil {
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
