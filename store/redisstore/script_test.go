package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// ttls returns the keys of a server with how long they live.
func ttls(t *testing.T, c rueidis.Client) map[string]time.Duration {
	t.Helper()
	keys, err := c.Do(t.Context(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]time.Duration)
	for _, key := range keys {
		ms, err := c.Do(t.Context(), c.B().Pttl().Key(key).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		all[key] = time.Duration(ms) * time.Millisecond
	}
	return all
}

func TestEveryKeyExpires(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	kinds := map[string]bool{}
	for _, s := range subjects(t) {
		play(t, open(t, c), &s, 1, 400)
		for key, ttl := range ttls(t, c) {
			if ttl <= 0 {
				t.Errorf("%s: key %s lives %v, want an end", s.name, key, ttl)
			}
			kinds[key[strings.LastIndexByte(key, ':'):]] = true
		}
	}
	if !kinds[":z"] || !kinds[":u"] {
		t.Errorf("got no key for many members, want some")
	}
}

// A key lives as long as its state. A key of a sliding window or of a bucket lives
// up to an eighth of the window longer, because its end moves with each hit.
func TestKeysLiveAsLongAsTheirStates(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	for _, subject := range subjects(t) {
		limit := subject.compiled[0]
		ops := []store.Op{{Space: store.NewSpace("", subject.name, "rule", 0), Limit: limit, Key: []byte("k"), N: 1, Member: []byte("m")}}
		for _, verb := range []store.Verb{store.Take, store.Record, store.Take, store.Refund, store.Check} {
			began := time.Now()
			if err := store.Do(t.Context(), s, verb, ops); err != nil {
				t.Fatal(err)
			}
			key := redisstore.KeyName("weir", &ops[0])
			got, want := ttls(t, c)[key], ops[0].Result.ResetAfter
			passed := time.Since(began)
			longest := want
			if kind := limit.Window.Kind; (kind == window.KindSliding || kind == window.KindBucket) && limit.Measure != window.Distinct && want > 0 {
				longest += limit.Window.Length / 8
			}
			if want == window.Never {
				want, longest = 200*365*24*time.Hour, 1<<63-1-time.Hour // until the year 2255
			}
			if limit.Ban.For > 0 {
				longest = 1<<63 - 1 - time.Hour // strikes outlive hits
			}
			const off = 100 * time.Millisecond // what the clocks of this machine may be
			if got < want-passed-off || got > longest+off {
				t.Errorf("%s, after a %v: the key lives %v, want %v to %v", subject.name, verb, got, want, longest)
			}
		}
	}
}

// Two stores on one server with 64 callers admit exactly the quota.
func TestExactlyTheQuota(t *testing.T) {
	t.Parallel()
	addr := redistest.Server(t).Addr()
	stores := []store.Store{redisstore.New(connect(t, addr), ""), redisstore.New(connect(t, addr), "")}
	for _, w := range []window.Window{
		window.Sliding(time.Hour), window.Cells(time.Hour, 0), window.Fixed(time.Hour), window.Calendar(window.Year, nil), window.Bucket(365*24*time.Hour, 0),
	} {
		var admitted atomic.Int64
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				ops := []store.Op{{Space: store.NewSpace("", w.ID(), "", 0), Limit: window.MustCompile(window.Limit{Quota: 1000, Window: w}), Key: []byte("k"), N: 1}}
				for range 20 {
					if err := store.Do(t.Context(), stores[i%2], store.Take, ops); err != nil {
						t.Error(err)
					}
					if ops[0].Result.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		callers.Wait()
		if got := admitted.Load(); got != 1000 {
			t.Errorf("%s: got %d admitted of 1280, want 1000", w, got)
		}
	}
}

func TestScriptIsLoadedWhenTheServerLostIt(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	ops := []store.Op{hourly(10, "rule", "k")}
	for want := range int64(4) {
		if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
			t.Fatal(err)
		}
		if got := ops[0].Result.Used; got != want+1 {
			t.Errorf("take %d: got %d used, want %d", want, got, want+1)
		}
		if err := c.Do(t.Context(), c.B().ScriptFlush().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if state, _, err := s.Peek(t.Context(), &ops[0]); err != nil || len(state) != int(want)+1 {
			t.Errorf("peek: got %d words and error %v, want %d", len(state), err, want+1)
		}
	}
}

func TestLateCallsCountNothing(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	ops := []store.Op{hourly(10, "rule", "k"), hourly(10, "rule", "other")}
	now, err := redisstore.Call{}.Run(t.Context(), c, "weir", store.Check, ops)
	if err != nil {
		t.Fatal(err)
	}
	late := redisstore.Call{Deadline: now}
	if _, err := late.Run(t.Context(), c, "weir", store.Take, ops); !errors.Is(err, redisstore.ErrStale) {
		t.Errorf("got error %v, want %v", err, redisstore.ErrStale)
	}
	if keys := ttls(t, c); len(keys) != 0 {
		t.Errorf("got keys %v, want none", keys)
	}
	early := redisstore.Call{Deadline: now.Add(time.Hour)}
	if _, err := early.Run(t.Context(), c, "weir", store.Take, ops); err != nil || ops[1].Result.Used != 1 {
		t.Errorf("got %d used and error %v, want 1", ops[1].Result.Used, err)
	}
}

// A machine whose clock is years off still counts in the server's periods.
func TestCalendarIsTheServers(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	day := window.MustCompile(window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil)})
	ops := []store.Op{{Space: store.NewSpace("", "s", "", 0), Limit: day, Key: []byte("k"), N: 1}}
	for i, off := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour, -5 * 365 * 24 * time.Hour, 5 * 365 * 24 * time.Hour} {
		near := redisstore.Call{Near: window.At(time.Now().Add(off))}
		now, err := near.Run(t.Context(), c, "weir", store.Take, ops)
		if err != nil {
			t.Fatalf("%v off: got error %v", off, err)
		}
		r := ops[0].Result
		if _, end := day.Window.PeriodBounds(now); r.Used > int64(i)+1 || now.Add(r.ResetAfter) != end {
			t.Errorf("%v off: got %+v at %v, want the day's end", off, r, now.Time())
		}
	}
}

// A state with dates that no program writes, above 2^53, keeps no server busy.
func TestDatesOfAnotherAge(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	op := hourly(3, "rule", "k")
	op.Limit = window.MustCompile(window.Limit{
		Quota: 3, Window: window.Fixed(time.Minute), After: window.After{Count: 3, Window: window.Sliding(time.Hour)},
	})
	key, late := redisstore.KeyName("weir", &op), "\xff\xff\xff\xff\xff\xff\xff"
	one, none := "\x01\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00"
	base := "\x01\x01\x03\x00" + late + late + one + one + none + late + late
	state := "\x01\x06" + string(rune(len(base))) + "\x00\x00" + base + "\x01\x03" + late + "\x03" + none[1:]
	if err := c.Do(t.Context(), c.B().Set().Key(key).Value(state).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := store.Do(ctx, s, store.Take, []store.Op{op}); err != nil {
		t.Errorf("got error %v, want a denial", err)
	}
}

// A value of another program under weir's key is an error that names the key, and
// nothing is counted for any op.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	limits := map[string]window.Limit{
		"sliding": {Quota: 10, Window: window.Sliding(time.Hour)},
		"groups":  {Quota: 1000, Window: window.Sliding(time.Hour)},
		"fixed":   {Quota: 10, Window: window.Fixed(time.Hour)},
		"members": {Quota: 10, Window: window.Sliding(time.Hour), Measure: window.Distinct},
	}
	for name, l := range limits {
		limit := window.MustCompile(l)
		for what, set := range map[string]rueidis.Completed{
			"a list":         c.B().Rpush().Key("x").Element("1").Build(),
			"text":           c.B().Set().Key("x").Value("hello, this is no state, but longer than the head of one").Build(),
			"a digit":        c.B().Set().Key("x").Value("7").Build(),
			"version 2":      c.B().Set().Key("x").Value("\x02\x01" + strings.Repeat("\x00", 37)).Build(),
			"another kind":   c.B().Set().Key("x").Value("\x01\x05" + strings.Repeat("\x00", 37)).Build(),
			"a short string": c.B().Set().Key("x").Value("\x01").Build(),
		} {
			bad := store.Op{Space: store.NewSpace("", name, "rule", 0), Limit: limit, Key: []byte(what), N: 1}
			key := redisstore.KeyName("weir", &bad)
			if err := errors.Join(c.Do(t.Context(), set).Error(), c.Do(t.Context(), c.B().Rename().Key("x").Newkey(key).Build()).Error()); err != nil {
				t.Fatal(err)
			}
			good := hourly(10, "good", fmt.Sprint(name, what))
			for _, ops := range [][]store.Op{{bad}, {good, bad}, {bad, good}} {
				err := store.Do(t.Context(), s, store.Take, ops)
				var outage *store.OutageError
				if !errors.As(err, &outage) || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
					t.Errorf("%s, %s: got error %v, want an outage that names %q", name, what, err, key)
				}
			}
			good.N = 0
			ops := []store.Op{good}
			if err := store.Do(t.Context(), s, store.Check, ops); err != nil || ops[0].Result.Used != 0 {
				t.Errorf("%s, %s: got %d counted next to it and error %v, want 0", name, what, ops[0].Result.Used, err)
			}
			if _, _, err := s.Peek(t.Context(), &bad); err == nil {
				t.Errorf("%s, %s: peek: got no error", name, what)
			}
			if err := s.Forget(t.Context(), &bad); err != nil {
				t.Errorf("%s, %s: forget: got error %v", name, what, err)
			}
		}
	}
}

// The error of a server that refuses for another reason is passed on.
func TestRefusedRead(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("ACL", "SETUSER", "default", "-get", "-mget")
	s := redisstore.New(connect(t, n.Addr()), "")
	for _, quota := range []int64{10, 1000} {
		err := store.Do(t.Context(), s, store.Take, []store.Op{hourly(quota, "rule", "k")})
		if err == nil || !regexp.MustCompile("can't run|NOPERM|no permissions").MatchString(err.Error()) || strings.Contains(err.Error(), "not weir's") {
			t.Errorf("got error %v, want that the user has no right", err)
		}
	}
}

// Members are told apart by 128 bits of a hash: two members whose hashes begin with the same
// 64 bits, as a caller can compute them in minutes, count as two.
func TestMembersWithNearlyTheSameHash(t *testing.T) {
	t.Parallel()
	s := redisstore.New(connect(t, redistest.Server(t).Addr()), "")
	op := store.Op{Space: store.NewSpace("", "s", "", 0), Key: []byte("k"), N: 1,
		Limit: window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Hour), Measure: window.Distinct})}
	for i := range 100 { // at first in a string, then in a set
		for _, member := range []string{"m-afkcaidfigoenpeg", "m-ghnpgfionbjlocie", fmt.Sprint(i)} {
			op.Member = []byte(member)
			ops := []store.Op{op}
			if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
				t.Fatal(err)
			}
			op.Result = ops[0].Result
		}
		if want := int64(3 + i); op.Result.Used != want {
			t.Fatalf("got %d members, want %d", op.Result.Used, want)
		}
	}
}

// The members that an earlier release counted by 64 bits of a hash count as none.
func TestMembersOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	for name, state := range map[string]string{"few": "\x00" + strings.Repeat("f", 3*17), "many": "\x01"} {
		op := store.Op{Space: store.NewSpace("", "s", "", 0), Key: []byte(name), N: 1, Member: []byte("m"),
			Limit: window.MustCompile(window.Limit{Quota: 3, Window: window.Sliding(time.Hour), Measure: window.Distinct})}
		key := redisstore.KeyName("weir", &op)
		if err := c.Do(t.Context(), c.B().Set().Key(key).Value("\x01\x07"+strings.Repeat("\x00", 7)+state).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if words, _, err := s.Peek(t.Context(), &op); err != nil || len(words) != 0 {
			t.Errorf("%s: peek: got %d words and error %v, want none", name, len(words), err)
		}
		for _, verb := range []store.Verb{store.Take, store.Take, store.Refund, store.Check} {
			ops := []store.Op{op}
			if err := store.Do(t.Context(), s, verb, ops); err != nil || ops[0].Result.Used > 1 {
				t.Errorf("%s, %v: got %d members and error %v, want 1 at most", name, verb, ops[0].Result.Used, err)
			}
		}
	}
}

// Members that are too many for one string have their own keys, which come and
// go with the string.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	limit := window.MustCompile(window.Limit{Quota: 3000, Window: window.Sliding(time.Hour), Measure: window.Distinct})
	op := store.Op{Space: store.NewSpace("", "s", "", 0), Limit: limit, Key: []byte("k"), N: 1}
	run := func(verb store.Verb, member int) window.Result {
		op.Member = fmt.Append(nil, "member", member)
		ops := []store.Op{op}
		if err := store.Do(t.Context(), s, verb, ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Result
	}
	for i := range 3100 {
		run(store.Record, i)
		if i%3 == 0 {
			run(store.Take, i)
		}
	}
	if r := run(store.Check, 50); r.Used != 3000 || r.Allowed {
		t.Errorf("a member that was dropped: got %+v, want denied", r)
	}
	if r := run(store.Check, 3050); !r.Allowed {
		t.Errorf("a member inside: got %+v, want allowed", r)
	}
	state, _, err := s.Peek(t.Context(), &op)
	if err != nil || len(state) != 6002 {
		t.Errorf("peek: got %d words and error %v, want 6002: two are of the dropped members", len(state), err)
	}
	if got := len(ttls(t, c)); got != 3 {
		t.Errorf("got %d keys, want 3", got)
	}
	if err := s.Forget(t.Context(), &op); err != nil {
		t.Fatal(err)
	}
	if keys := ttls(t, c); len(keys) != 0 {
		t.Errorf("after forget: got keys %v, want none", keys)
	}
}

// When many members have left at once, each call removes few of them, because the server decides nothing meanwhile.
// What counts is the same as if all were removed, also under a smaller quota and in a reading.
func TestMembersLeaveFewAtATime(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	got, want := open(t, connect(t, n.Addr())), storetest.NewModel()
	space := store.NewSpace("", "s", "rule", 0)
	start, member := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)), 0
	take := func(at time.Duration, quota int64) (store.Op, window.Result) {
		op := store.Op{Space: space, Key: []byte("k"), N: 1, Member: fmt.Append(nil, "member", member),
			Limit: window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Minute), Measure: window.Distinct})}
		member++
		var results [2]window.Result
		for i, s := range []storetest.Opened{got, want} {
			s.Set(start.Add(at))
			ops := []store.Op{op}
			if err := store.Do(t.Context(), s.Store, store.Record, ops); err != nil {
				t.Fatal(err)
			}
			results[i] = ops[0].Result
		}
		if results[0] != results[1] {
			t.Fatalf("member %d: got %+v, want %+v", member, results[0], results[1])
		}
		return op, results[0]
	}
	for range 1000 {
		take(0, 2000)
	}
	for range 30 {
		take(30*time.Second, 2000)
	}
	take(61*time.Second, 20) // drops one of the 31 inside
	op, r := take(61*time.Second, 2000)
	kept := func() int64 {
		keys, err := n.Do("KEYS", "*:z")
		if err != nil {
			t.Fatal(err)
		}
		return n.Must("ZCARD", keys.([]any)[0].(string)).(int64)
	}
	if got := kept(); got < 900 {
		t.Errorf("got %d members after two calls, want most of those that have left", got)
	}
	mine, now, err := got.Store.(*redisstore.Store).Peek(t.Context(), &op)
	if err != nil {
		t.Fatal(err)
	}
	theirs := want.Store.(interface {
		State(op *store.Op) window.State
	}).State(&op)
	for _, later := range []time.Duration{0, 20 * time.Second, 40 * time.Second} {
		if got, want := op.Limit.Read(mine, now.Add(later)), op.Limit.Read(theirs, now.Add(later)); !reflect.DeepEqual(got, want) {
			t.Errorf("%v later: got %+v, want %+v", later, got, want)
		}
	}
	for range 100 {
		_, r = take(62*time.Second, 2000)
	}
	if got := kept(); got != r.Used-1 {
		t.Errorf("got %d members after a hundred calls, want the %d inside", got, r.Used-1)
	}
}

// The members of a period leave together, so a reading of it asks for their number: Redis
// decides nothing while it lists them.
func TestReadsNumberOfMembers(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := redisstore.New(connect(t, n.Addr()), "")
	sent := func() int {
		bytes, err := strconv.Atoi(n.Info("total_net_output_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	for _, w := range []window.Window{window.Fixed(time.Hour), window.Calendar(window.Year, nil)} {
		op := store.Op{
			Space: store.NewSpace("", w.Kind.String(), "", 0), Key: []byte("k"), N: 1,
			Limit: window.MustCompile(window.Limit{Quota: 2000, Window: w, Measure: window.Distinct}),
		}
		calls := make([]store.Call, 2010)
		for i := range calls {
			own := op
			own.Member = fmt.Append(nil, i)
			calls[i] = store.Call{Verb: store.Record, Ops: []store.Op{own}}
		}
		if err := s.Do(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
		check := op
		check.N = 0
		checked := []store.Op{check}
		if err := store.Do(t.Context(), s, store.Check, checked); err != nil {
			t.Fatal(err)
		}
		before := sent()
		r, err := s.Read(t.Context(), &op)
		if bytes := sent() - before; bytes > 40_000 { // with the answer to INFO; the members take twice as many
			t.Errorf("%v: got %d bytes", w.Kind, bytes)
		}
		want := checked[0].Result
		want.ResetAfter = r.ResetAfter // which has got shorter
		if err != nil || r.Result != want || r.ResetAfter <= 0 || r.Used != 2000 || len(r.History) != 1 || r.History[0].Hits != 2000 {
			t.Errorf("%v: got %+v, %v, want %+v", w.Kind, r, err, want)
		}
	}
}

// lister counts the scripts that a client runs at the same time. While held is not nil, they wait for it.
type lister struct {
	rueidis.Client
	held      chan struct{}
	begun     chan struct{}
	now, most atomic.Int64
	together  int // the most scripts of one round trip
}

func (l *lister) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	if strings.HasPrefix(all[0].Commands()[0], "EVAL") {
		l.together = max(l.together, len(all))
	}
	return l.Client.DoMulti(ctx, all...)
}

func (l *lister) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	l.most.Store(max(l.most.Load(), l.now.Add(1)))
	defer l.now.Add(-1)
	if l.held != nil {
		l.begun <- struct{}{}
		<-l.held
	}
	return l.Client.Do(ctx, cmd)
}

// The members of a sliding window leave one by one, so a reading lists them. One caller at a time does, because Redis
// decides nothing meanwhile; others can leave.
func TestOneListsManyMembers(t *testing.T) {
	t.Parallel()
	c := &lister{Client: connect(t, redistest.Server(t).Addr())}
	s := redisstore.New(c, "")
	op := store.Op{
		Space: store.NewSpace("", "s", "", 0), Key: []byte("k"),
		Limit: window.MustCompile(window.Limit{Quota: 2000, Window: window.Sliding(time.Hour), Measure: window.Distinct}),
	}
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			if _, err := s.Read(t.Context(), &op); err != nil && !errors.Is(err, remote.ErrBusy) { // a slow server
				t.Error(err)
			}
		})
	}
	readers.Wait()
	if got := c.most.Load(); got != 1 {
		t.Errorf("got %d callers at a time, want 1", got)
	}
	c.held, c.begun = make(chan struct{}), make(chan struct{}, 2)
	readers.Go(func() { _, _ = s.Read(t.Context(), &op) })
	<-c.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Read(ctx, &op); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v of a caller that has left, want %v", err, context.Canceled)
	}
	close(c.held)
	readers.Wait()
}

// However many callers of one namespace list members, one of another namespace waits for one or two of them.
func TestListersOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	s := redisstore.New(connect(t, redistest.Server(t).Addr()), "")
	read := func(namespace string) error {
		op := store.Op{
			Space: store.NewSpace(namespace, "s", "", 0), Key: []byte("k"),
			Limit: window.MustCompile(window.Limit{Quota: 2000, Window: window.Sliding(time.Hour), Measure: window.Distinct}),
		}
		_, err := s.Read(t.Context(), &op)
		return err
	}
	const crowd = 50
	var others atomic.Int64
	var ended atomic.Bool
	var readers sync.WaitGroup
	for range crowd {
		readers.Go(func() {
			for !ended.Load() {
				if err := read("loud"); err == nil {
					others.Add(1)
				} else if !errors.Is(err, remote.ErrBusy) { // a slow server
					t.Error(err)
				}
			}
		})
	}
	for others.Load() < crowd {
		if err := read("warm"); err != nil {
			t.Error(err)
		}
	}
	before := others.Load()
	if err := read("quiet"); err != nil {
		t.Error(err)
	}
	if got := others.Load() - before; got > crowd/4 {
		t.Errorf("got %d answers to others meanwhile, want one or two", got)
	}
	ended.Store(true)
	readers.Wait()
}

// Keys with large states, or many members that are listed, are few of a round trip, because the server decides
// nothing meanwhile.
func TestKeysWithManyMembersAreFewAtOnce(t *testing.T) {
	t.Parallel()
	c := &lister{Client: connect(t, redistest.Server(t).Addr())}
	s := redisstore.New(c, "")
	for _, row := range []struct {
		limit   window.Limit
		members int
		want    int
	}{
		{window.Limit{Quota: 9999, Window: window.Fixed(time.Hour)}, 1, 64},
		{window.Limit{Quota: 10_000, Window: window.Fixed(time.Hour), Measure: window.Distinct}, 1, 13},
		{window.Limit{Quota: 10_001, Window: window.Fixed(time.Hour), Hold: time.Hour, MaxHolds: 10_000}, 1, 3},
		{window.Limit{Quota: 10_000, Window: window.Sliding(time.Hour), Measure: window.Distinct}, 1, 64},
		{window.Limit{Quota: 250, Window: window.Sliding(time.Hour), Measure: window.Distinct}, 200, 5},
	} {
		c.together = 0
		op := store.Op{Space: store.NewSpace("", row.limit.Window.ID()+fmt.Sprint(row.limit.Quota), "", 0), Limit: window.MustCompile(row.limit), N: 1}
		for i := range 80 {
			calls := make([]store.Call, row.members)
			for n := range calls {
				own := op
				own.Key, own.Member = fmt.Append(nil, "k", i), fmt.Append(nil, n)
				calls[n] = store.Call{Verb: store.Take, Ops: []store.Op{own}}
			}
			if err := s.Do(t.Context(), calls); err != nil {
				t.Fatal(err)
			}
		}
		found := map[string]bool{}
		for after := []byte(nil); ; {
			next, err := s.Keys(t.Context(), &op, after, func(key []byte, _ window.State, _ window.Instant) { found[string(key)] = true })
			if err != nil {
				t.Fatal(err)
			}
			if after = next; after == nil {
				break
			}
		}
		if len(found) != 80 || c.together != row.want {
			t.Errorf("%+v: got %d keys, %d at once, want 80 and %d", row.limit, len(found), c.together, row.want)
		}
	}
}

// A member counts its uses up to 2047. From then on it cannot be refunded, in a
// string as in a set.
func TestMembersUsedTooOften(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	often := []int{2046, 2047, 2050}
	if testing.Short() {
		often = often[2:]
	}
	for _, others := range []int{0, 100} {
		got, want := open(t, c), storetest.NewModel()
		op := store.Op{Space: store.NewSpace("", "s", "", 0), Key: []byte("k"), N: 1,
			Limit: window.MustCompile(window.Limit{Quota: 200, Window: window.Sliding(time.Hour), Measure: window.Distinct})}
		at := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
		run := func(verb store.Verb, member string) {
			at++
			op.Member = []byte(member)
			ops, expected := []store.Op{op}, []store.Op{op}
			got.Set(at)
			want.Set(at)
			if err := errors.Join(store.Do(t.Context(), got.Store, verb, ops), store.Do(t.Context(), want.Store, verb, expected)); err != nil {
				t.Fatal(err)
			}
			if ops[0].Result != expected[0].Result {
				t.Fatalf("%d others, %v: got %+v, want %+v", others, verb, ops[0].Result, expected[0].Result)
			}
		}
		for i := range others {
			run(store.Take, fmt.Sprint(i))
		}
		for _, uses := range often {
			for range uses {
				run(store.Take, fmt.Sprint("often ", uses))
			}
			for range uses {
				run(store.Refund, fmt.Sprint("often ", uses))
			}
		}
	}
}
