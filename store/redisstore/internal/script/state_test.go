package script_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// describe returns the page about a state at 13:00.
func describe(state string) (text string, ok bool) {
	k := script.Kept{State: state, Now: window.At(time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)), TTL: time.Hour}
	text, err := k.Describe("key")
	return text, err == nil
}

// read reads a state at 13:00, under limits of many kinds.
func read(state string) {
	k := script.Kept{State: state, Now: window.At(time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)), TTL: time.Hour}
	hour, day, cells := window.Sliding(time.Hour), window.Calendar(window.Day, nil), window.Cells(time.Hour, 60)
	for _, l := range []window.Limit{
		{Quota: 10, Window: hour}, {Quota: 1000, Window: hour}, {Quota: 10, Window: day}, {Quota: 10, Window: cells},
		{Quota: 10, Window: window.Fixed(time.Hour)}, {Quota: 7, Window: window.Bucket(time.Hour, 3)}, {Quota: 10, Window: window.Ever()},
		{Quota: 10, Window: window.Held(time.Hour)}, {Quota: 10, Window: hour, Measure: window.Distinct},
		{Quota: 10, Window: day, Measure: window.Distinct}, {Quota: 10, Window: hour, After: window.After{Count: 3, Window: cells}},
		{Quota: 10, Window: cells, Hold: time.Minute}, {Quota: 7, Window: window.Bucket(time.Hour, 3), Hold: time.Minute},
		{Quota: 10, Window: hour, Ban: window.Ban{For: time.Minute}},
	} {
		limit := window.MustCompile(l)
		if s, err := k.Words("key", limit); err == nil {
			limit.Read(s, k.Now)
		}
	}
}

// FuzzPeek checks that no text under a key makes a reader panic, or take much time or memory.
func FuzzPeek(f *testing.F) {
	for _, state := range []string{
		"01010300002b75f4094c0600fc0c9b094c0601000000000000010000000000001f00000000000000fc0c9b094c0600fc0c9b094c06",
		"01020046c3230000006c132d000000002200000000000001000000000000020068131f0000000000006a1302000000000000",
		"010300708653094c0622000000000000",
		"01056d43c1650d4c060500000000000007000000000000",
		"0106100000010400207262134c062200000000000001010100002b75f4094c06002b75f4094c06010000000000000100000000000020000000000000",
		"010900207262134c060244d2f618b28451c7c75184b218f6d24400136865094c060100d187c4c3e2ccf3fbfbf3cce2c3c487d100fc0c9b094c06010029dd6c6f3fbf18a1a118bf3f6f6cdd29002b75f4094c060200",
		"0102" + "00000000000000" + "6c132d00000000" + "22000000000000" + "01000000000000" + "0000", // cells of no width
		"0102" + "01000000000000" + "00000000000000" + "22000000000000" + "01000000000000" + "0000", // a cell for each microsecond
		"0102" + "ffffffffffff0f" + "ffffffffffff0f" + "22000000000000" + "01000000000000" + "0000", // in another age
		"0106380000" + "010200000000000000" + "6c132d00000000" + "22000000000000" + "01000000000000" + "0000",
		"010c060000" + "01000000000000" + "01000000000000" + "00000000000000",                                        // holds of a limit after a count
		"010c050000" + "01000000000000" + "01000000000000" + "00000000000000" + "010300708653094c062200000000000000", // of a bucket, around another window
		strings.Repeat("010d01"+"00fc0c9b094c06"+"00000000010000", 1000) + "010300708653094c062200000000000000",      // bans around bans
	} {
		b, err := hex.DecodeString(state)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, state string) {
		read(state)
		text, ok := describe(state)
		if ok == (text == "") {
			t.Errorf("got %q, readable %v", text, ok)
		}
		if ok && !strings.HasPrefix(state, "\x01") {
			t.Errorf("got %q of a state of another version", text)
		}
	})
}

// A reading of a sorted set of which all members have left, and only the one used last was listed, has no members.
func TestMembersThatHaveLeft(t *testing.T) {
	t.Parallel()
	mark := strings.Repeat("\xff", 6) + "\x0f"
	k := script.Kept{State: "\x01\x07" + mark + "\x03", Members: 2, Last: []string{strings.Repeat("f", 16), "1"}}
	s, err := k.Words("key", window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Hour), Measure: window.Distinct}))
	if err != nil || len(s) != 0 {
		t.Errorf("got %d words, %v, want none", len(s), err)
	}
}

// TestDescribe runs testdata/inspect.txt: states in hexadecimal, and the pages
// about them.
func TestDescribe(t *testing.T) {
	t.Parallel()
	datatest.RunTest(t, "testdata/inspect.txt", func(t *testing.T, d *datatest.TestData) string {
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
