package weir_test

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// A caller may take and cancel, and knows the layout of a receipt. With a receipt of
// its own it tries to give back what another caller of the same key has counted: by
// another instant, another digest, another place, or any other text. All of that
// finds nothing and changes nothing. The receipt as it was given still works, once.
func TestForgedReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{llmTokens, llmCalls})
		victim := weir.Attributes("team", "red", "tokens", "400")
		own := weir.Attributes("team", "red", "tokens", "1")
		theirs := do(t, e, step{store.Take, victim, weir.Receipt{}, true, []int64{400, 1}, []bool{true, false}}).Receipt
		time.Sleep(time.Second)
		mine := do(t, e, step{store.Take, own, weir.Receipt{}, true, []int64{401, 2}, []bool{true, false}}).Receipt

		other := engine(t, []rule.Rule{llmTokens, llmCalls})
		foreign := do(t, other, step{store.Take, own, weir.Receipt{}, true, []int64{1, 1}, []bool{true, false}}).Receipt
		forged := map[string]seal.Take{
			"without a seal":      {ID: mine.Take.ID, At: mine.Take.At, Wall: mine.Take.Wall, Counted: mine.Take.Counted},
			"of the zero key":     new(seal.Key).Seal(mine.Take),
			"of another instant":  {ID: mine.Take.ID, At: theirs.Take.At, Wall: theirs.Take.Wall, Counted: mine.Take.Counted, Seal: mine.Take.Seal},
			"of another digest":   {ID: mine.Take.ID, At: mine.Take.At, Wall: mine.Take.Wall, Counted: theirs.Take.Counted, Seal: mine.Take.Seal},
			"of another place":    {ID: mine.Take.ID, At: mine.Take.At, Wall: mine.Take.Wall, Place: seal.Local, Counted: mine.Take.Counted, Seal: mine.Take.Seal},
			"with another's seal": {ID: mine.Take.ID, At: theirs.Take.At, Wall: theirs.Take.Wall, Counted: theirs.Take.Counted, Seal: theirs.Take.Seal},
			"of another engine":   foreign.Take,
			"of another take":     {ID: [12]byte{1}, At: mine.Take.At, Wall: mine.Take.Wall, Counted: mine.Take.Counted, Seal: mine.Take.Seal},
		}
		nothing := func(what string, r weir.Receipt) {
			for _, verb := range []store.Verb{store.Settle, store.Cancel, store.Renew} {
				for _, attrs := range [][]weir.Attribute{own, victim} {
					do(t, e, step{verb, attrs, r, true, []int64{401, 2}, []bool{false, false}})
				}
			}
			if t.Failed() {
				t.Fatalf("a receipt %s changed something", what)
			}
		}
		for what, take := range forged {
			nothing(what, weir.Receipt{Take: take})
		}
		// Every bit of the text, and text that was made up.
		raw, err := base64.RawURLEncoding.DecodeString(mine.String())
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range 8*len(raw) + 500 {
			b := append([]byte(nil), raw...)
			if i < 8*len(raw) {
				b[i/8] ^= 1 << (i % 8)
			} else {
				for n := range b[13:] { // all but the id, which the caller knows
					b[13+n] = byte(rng.Uint32())
				}
			}
			if r, err := receipt.Parse(base64.RawURLEncoding.EncodeToString(b)); err == nil {
				nothing("with other bytes", r)
			}
		}
		// Of a take of more: the digest is that of another request.
		do(t, e, step{store.Renew, own, mine, true, []int64{401, 2}, []bool{true, false}})
		more := weir.Request{Attributes: own, Hits: 2, Receipt: mine}
		var d weir.Decision
		if err := e.Do(t.Context(), store.Cancel, &more, &d); err != nil || d.Usages[0].Used != 400 || d.Usages[1].Used != 2 {
			t.Errorf("cancel of more hits: got %+v and error %v, want the hold ended and both calls to stay", d.Usages, err)
		}
		do(t, e, step{store.Cancel, victim, theirs, true, []int64{0, 1}, []bool{true, false}})
		do(t, e, step{store.Cancel, victim, theirs, true, []int64{0, 1}, []bool{false, false}})
	})
}
