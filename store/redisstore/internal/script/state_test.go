package script_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// describe returns the page about a state at 13:00.
func describe(state string) (text string, ok bool) {
	k := script.Kept{State: state, Now: window.At(time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)), TTL: time.Hour}
	text, err := k.Describe("key")
	return text, err == nil
}

// FuzzPeek checks that no text under a key makes a reader panic.
func FuzzPeek(f *testing.F) {
	for _, state := range []string{
		"01010300002b75f4094c0600fc0c9b094c0601000000000000010000000000001f00000000000000fc0c9b094c0600fc0c9b094c06",
		"01020046c3230000006c132d000000002200000000000001000000000000020068131f0000000000006a1302000000000000",
		"010300708653094c0622000000000000",
		"01056d43c1650d4c060500000000000007000000000000",
		"0106100000010400207262134c062200000000000001010100002b75f4094c06002b75f4094c06010000000000000100000000000020000000000000",
		"010900207262134c060044d2f618b28451c700136865094c060100d187c4c3e2ccf3fb00fc0c9b094c06010029dd6c6f3fbf18a1002b75f4094c060200",
	} {
		b, err := hex.DecodeString(state)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, state string) {
		text, ok := describe(state)
		if ok == (text == "") {
			t.Errorf("got %q, readable %v", text, ok)
		}
		if ok && !strings.HasPrefix(state, "\x01") {
			t.Errorf("got %q of a state of another version", text)
		}
	})
}

// TestDescribe runs testdata/inspect.txt: states in hexadecimal, and the pages
// about them.
func TestDescribe(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/inspect.txt", func(t *testing.T, d *datadriven.TestData) string {
		state, err := hex.DecodeString(strings.ReplaceAll(d.Input, "\n", ""))
		if err != nil {
			return err.Error() + "\n"
		}
		text, ok := describe(string(state))
		if !ok {
			return "not a state\n"
		}
		return text
	})
}
