package redisstore_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// A state in words gives the same results in package window as the model's.
func TestPeekedStates(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	holding, banned := 0, 0
	for _, s := range subjects(t) {
		got, want := open(t, c), storetest.NewModel()
		p := &player{Rand: rand.New(rand.NewPCG(9, 9)), subject: &s, space: store.NewSpace("", s.name, "", 0)}
		p.now = window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		for i := range 300 {
			p.pass()
			got.Set(p.now)
			want.Set(p.now)
			verb, ops := p.call()
			expected := slices.Clone(ops)
			if err := store.Do(t.Context(), got.Store, verb, ops); err != nil {
				t.Fatal(err)
			}
			if err := store.Do(t.Context(), want.Store, verb, expected); err != nil {
				t.Fatal(err)
			}
			if i%10 > 0 {
				continue
			}
			l := s.compiled[0]
			op := store.Op{Space: p.space, Limit: l, Key: ops[0].Key}
			mine, now, err := got.Store.(*redisstore.Store).Peek(t.Context(), &op)
			if err != nil || now != p.now {
				t.Fatalf("%s: got instant %d and error %v, want %d", s.name, now, err, p.now)
			}
			theirs := want.Store.(interface {
				State(op *store.Op) window.State
			}).State(&op)
			for _, later := range []time.Duration{0, time.Second, time.Minute, time.Hour} {
				h := window.Hits{N: max(1, s.limits[0].Quota)}
				got, want := l.Check(mine, now.Add(later), h), l.Check(theirs, now.Add(later), h)
				if got != want {
					t.Fatalf("%s, call %d, %v later:\ngot  %+v\nof   %v\nwant %+v\nof   %v", s.name, i, later, got, mine, want, theirs)
				}
				reading, other := l.Read(mine, now.Add(later)), l.Read(theirs, now.Add(later))
				if !reflect.DeepEqual(reading, other) {
					t.Fatalf("%s, call %d, %v later:\nread %+v\nof   %v\nwant %+v\nof   %v", s.name, i, later, reading, mine, other, theirs)
				}
				holding += len(reading.Holds)
				if reading.BannedUntil > 0 {
					banned++
				}
			}
		}
	}
	if holding == 0 || banned == 0 {
		t.Errorf("got %d holds and %d bans in the states, want some", holding, banned)
	}
}

// TestInspectHolds shows states with holds and bans, and states that are cut off, to
// people: each page has what there is, and no state that cannot be read has a page.
func TestInspectHolds(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	c := connect(t, n.Addr())
	pages := 0
	for _, s := range subjects(t) {
		if !s.holds() && s.compiled[0].Window.Kind != window.KindEver {
			continue
		}
		o := open(t, c)
		prefix := fmt.Sprint("t", opened.Load())
		p := &player{Rand: rand.New(rand.NewPCG(8, 9)), subject: &s, space: store.NewSpace("", s.name, "", 0)}
		p.now = window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		for i := range 120 {
			p.pass()
			o.Set(p.now)
			verb, ops := p.call()
			if err := store.Do(t.Context(), o.Store, verb, ops); err != nil {
				t.Fatal(err)
			}
			p.note(verb, ops)
			op := &ops[0]
			reading, err := o.Store.Read(t.Context(), op)
			if err != nil {
				t.Fatal(err)
			}
			key := redisstore.KeyName(prefix, op)
			page, err := o.Store.(*redisstore.Store).Inspect(t.Context(), key)
			if errors.Is(err, script.ErrNoKey) {
				continue
			}
			if err != nil {
				t.Fatalf("%s, call %d: got error %v", s.name, i, err)
			}
			pages++
			if reading.Strikes > 0 && !strings.Contains(page, fmt.Sprintf("strikes  %d\n", reading.Strikes)) && !strings.Contains(page, "strikes  ") {
				t.Fatalf("%s, call %d: got page\n%s\nwant %d strikes", s.name, i, page, reading.Strikes)
			}
			if len(reading.Holds) > 0 && !strings.Contains(page, "holds    ") && !strings.Contains(page, "places   ") {
				t.Fatalf("%s, call %d: got page\n%s\nwant %d holds", s.name, i, page, len(reading.Holds))
			}
			if i%40 > 0 {
				continue
			}
			whole := n.Must("GET", key).(string)
			for cut := range len(whole) {
				n.Must("SET", "cut", whole[:cut])
				_, _ = o.Store.(*redisstore.Store).Inspect(t.Context(), "cut") // must not panic
			}
		}
	}
	if pages < 500 {
		t.Errorf("got %d pages, want many", pages)
	}
}

// pinned are states as the present version of each kind writes them. When a test with
// them fails, users lose their counters. A new form gets a new version byte, and
// the old one a line here, unless it counts as none ([TestMembersOfAnEarlierRelease]).
var pinned = []struct {
	name  string
	limit window.Limit
	state string // hexadecimal
}{
	{"sliding", window.Limit{Quota: 3, Window: window.Sliding(time.Hour)},
		"01010300002b75f4094c0600fc0c9b094c0601000000000000010000000000001f00000000000000fc0c9b094c0600fc0c9b094c06"},
	{"groups", window.Limit{Quota: 1000, Window: window.Sliding(time.Hour)},
		"01010400002b75f4094c0600708653094c06040000000000000a0000000000000000000000000000708653094c0600708653094c0600708653094c06"},
	{"cells", window.Limit{Quota: 100, Window: window.Cells(time.Hour, 6)},
		"01020046c3230000006c132d000000002200000000000001000000000000020068131f0000000000006a1302000000000000"},
	{"fixed", window.Limit{Quota: 100, Window: window.Fixed(time.Hour)},
		"010300708653094c0622000000000000"},
	{"calendar", window.Limit{Quota: 100, Window: window.Calendar(window.Day, nil)},
		"010400207262134c0622000000000000"},
	{"bucket", window.Limit{Quota: 7, Window: window.Bucket(time.Hour, 0)},
		"01056d43c1650d4c060500000000000007000000000000"},
	{"after", window.Limit{Quota: 1, Window: window.Sliding(time.Hour), After: window.After{Count: 2, Window: window.Calendar(window.Day, nil)}},
		"0106100000010400207262134c062200000000000001010100002b75f4094c06002b75f4094c06010000000000000100000000000020000000000000"},
	{"members", window.Limit{Quota: 5, Window: window.Sliding(time.Hour), Measure: window.Distinct},
		"0107000000000000000244d2f618b28451c78921b81dc70fe3ff00136865094c060100d187c4c3e2ccf3fb023e58402e4bf93c00fc0c9b094c06010029dd6c6f3fbf18a1445357528a08722e002b75f4094c060200"},
	{"members of a day", window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil), Measure: window.Distinct},
		"010900207262134c060244d2f618b28451c78921b81dc70fe3ff00136865094c060100d187c4c3e2ccf3fb023e58402e4bf93c00fc0c9b094c06010029dd6c6f3fbf18a1445357528a08722e002b75f4094c060200"},
}

func TestStatesOfOldVersions(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	start := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	for _, test := range pinned {
		o := open(t, c)
		model := storetest.NewModel()
		op := store.Op{Space: store.NewSpace("", test.name, "", 0), Limit: window.MustCompile(test.limit), Key: []byte("k")}
		prefix := fmt.Sprint("t", opened.Load())
		key := redisstore.KeyName(prefix, &op)
		for i, n := range []int64{30, 1, 2, 1} {
			op.N, op.Member = n, fmt.Append(nil, "member", i%3)
			at := start.Add(time.Duration(i*i) * 5 * time.Minute)
			o.Set(at)
			model.Set(at)
			for _, s := range []store.Store{o.Store, model.Store} {
				if err := store.Do(t.Context(), s, store.Record, []store.Op{op}); err != nil {
					t.Fatal(err)
				}
			}
		}
		written, err := c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString([]byte(written)); got != test.state {
			t.Errorf("%s: written: got %s, want %s", test.name, got, test.state)
		}
		old, err := hex.DecodeString(test.state)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), c.B().Set().Key(key).Value(string(old)).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{0, 1} {
			op.N = n
			got, want := []store.Op{op}, []store.Op{op}
			if err := store.Do(t.Context(), o.Store, store.Take, got); err != nil {
				t.Fatal(err)
			}
			if err := store.Do(t.Context(), model.Store, store.Take, want); err != nil {
				t.Fatal(err)
			}
			if got[0].Result != want[0].Result {
				t.Errorf("%s: read: got %+v, want %+v", test.name, got[0].Result, want[0].Result)
			}
		}
	}
}

func TestInspectAKey(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	op := store.Op{Space: store.NewSpace("", "s", "rule", 0), Key: []byte("k"), N: 1, Limit: window.MustCompile(window.Limit{Quota: 500, Window: window.Fixed(time.Hour), Measure: window.Distinct})}
	key := redisstore.KeyName("weir", &op)
	if _, err := s.Inspect(t.Context(), key); !errors.Is(err, script.ErrNoKey) {
		t.Errorf("got error %v, want %v", err, script.ErrNoKey)
	}
	for i := range 100 {
		op.Member = fmt.Append(nil, i)
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op, hourly(5, "other", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := s.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{key, "lives    for 59m", "distinct members in a fixed window, version 1", "members  100", "80 older", ", 1 times"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s\nwant %q in it", text, want)
		}
	}
	beside, err := s.Inspect(t.Context(), key+":z")
	if want := "key      " + key + ":z\nkind     beside the state of its members:\n\nkey      " + key + "\n"; err != nil || !strings.HasPrefix(beside, want) {
		t.Errorf("beside it: got error %v and %s\nwant %s", err, beside, want)
	}
	if err := c.Do(t.Context(), c.B().Rpush().Key("list:z").Element("1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"list:z": "it holds no string: it is not weir's", "none:z": script.ErrNoKey.Error()} {
		if _, err := s.Inspect(t.Context(), key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q in it", key, err, want)
		}
	}
}
