package koalafile_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// The tests in this file are named for the faults of koala that they show to
// be repaired, by their number in docs/from/koala.md.

// Koala looked and counted apart, so that many at once were let pass.
func TestFault01WriteThroughIsOneStep(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [count] [uid=+] [time=5; count=2] [result=2; return=501]`)
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			d, err := s.engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes("uid", "7")})
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if got := admitted.Load(); got != 2 {
		t.Errorf("100 at once at a limit of 2: got %d admitted, want 2", got)
	}
}

// Koala lost counts in races, and left keys that never expired.
func TestFault02EveryKeyCountsAllAndEnds(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [count] [uid=+] [time=5; count=2] [result=2; return=501]`)
	const keys, hits = 20, 16
	var callers sync.WaitGroup
	for i := range keys * hits {
		callers.Go(func() {
			uid := fmt.Sprint(i % keys)
			if _, err := s.engine.Record(t.Context(), weir.Request{Attributes: weir.Attributes("uid", uid)}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	for i := range keys {
		if _, d := s.ask(store.Check, "uid", fmt.Sprint(i)); d.Usages[0].Used != hits {
			t.Errorf("key %d: got %d used, want %d", i, d.Usages[0].Used, hits)
		}
	}
	s.pass(5 * time.Second)
	for i := range keys {
		s.want("allow", store.Check, "uid", fmt.Sprint(i))
	}
}

// Koala's leak let one more pass, in whole seconds, and a denied retry kept a
// key out.
func TestFault03LeakAdmitsExactlyCount(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [leak] [act=index;ip=+] [time=100; count=10] [result=2; return=1201]`)
	take := func(want string) {
		t.Helper()
		s.want(want, store.Take, "act", "index", "ip", "192.0.2.1")
	}
	for range 10 {
		take("allow")
		s.pass(time.Second)
	}
	for range 89 {
		take("koala-2 by koala-1201")
		s.pass(time.Second)
	}
	s.pass(time.Second - time.Microsecond)
	take("koala-2 by koala-1201")
	s.pass(time.Microsecond) // the first is 100 s ago
	take("allow")
	take("koala-2 by koala-1201")
}

// Koala's day was that of the machine; on one in UTC nothing was counted from
// 16:00 to 24:00. That of base ended at midnight UTC.
func TestFault04NaturalDayIsShanghai(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{
		`rule : [count] [uid=+] [time=86400; count=2] [result=2; return=111]`,
		`rule : [base] [uid=+] [base=2; time=80000; count=1] [result=2; return=111]`,
	} {
		s := open(t, rules)
		for _, begin := range []string{"2026-11-20 00:00:00", "2026-11-21 00:00:00", "2026-11-22 07:59:59"} {
			s.at(begin)
			s.want("allow", store.Take, "uid", "7")
			s.want("allow", store.Take, "uid", "7")
			s.want("koala-2 by koala-111", store.Take, "uid", "7")
			s.pass(16 * time.Hour)
			s.want("koala-2 by koala-111", store.Take, "uid", "7")
		}
		s.at("2026-11-22 23:59:59")
		s.want("koala-2 by koala-111", store.Take, "uid", "7")
		s.pass(time.Second)
		s.want("allow", store.Take, "uid", "7")
	}
}

// Koala died on a machine without time zones, and of a row without a colon.
func TestFault05NothingEndsTheProcess(t *testing.T) {
	t.Parallel()
	zone := koalafile.Shanghai(func(string) (*time.Location, error) { return nil, os.ErrNotExist })
	native, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{1992, 2026, 2100} {
		at := time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)
		if got, want := at.In(zone).Format(time.DateTime), at.In(native).Format(time.DateTime); got != want || zone.String() != native.String() {
			t.Errorf("without a database: got %s in %s, want %s in %s", got, zone, want, native)
		}
	}
	_, err = koalafile.Parse("koala_rule.conf", []byte("[rules]\nrule : [direct] [uid=7] [] [result=1; return=1]\n[result]\n0\n1 : {}\n"), nil)
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Place.Line != 4 {
		t.Errorf("a row without a colon: got %v, want a fault in line 4", err)
	}
}

// Koala sent an empty password, Redis refused it, and everything was let pass.
func TestFault06EmptyPasswordIsNone(t *testing.T) {
	t.Parallel()
	m, _, err := koalafile.ParseMain("koala.conf", []byte("rule_file = a\nredis_server = redis:6379\nredis_auth =\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.StoreURL(), "redis://redis:6379"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A blank after a value matched in koala, but was counted separately.
func TestFault07BlanksCountTogether(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [direct] [uid @ black] [time=1; count=0;] [result=2; return=103]
rule : [count] [act=mall;uid=+] [time=5; count=3] [result=2; return=501]`)
	s.want("allow", store.Take, "act", "mall", "uid", "7")
	s.want("allow", store.Take, "act", "mall ", "uid", " 7\t")
	s.want("allow", store.Take, "act", "\vmall\r", "uid", "7 ")
	s.want("koala-2 by koala-501", store.Take, "act", " mall", "uid", "7\n")
	s.want("koala-2 by koala-103", store.Take, "uid", " mallory  ")
}

// Koala joined the values of a key with |.
func TestFault08ValuesDoNotCollide(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [count] [a=+;b=+] [time=5; count=1] [result=2; return=501]`)
	s.want("allow", store.Take, "a", "1|2", "b", "3")
	s.want("allow", store.Take, "a", "1", "b", "2|3")
	s.want("koala-2 by koala-501", store.Take, "a", "1|2", "b", "3")
}

// Koala's multi/browse skipped direct, base and leak rules, and
// browse_complete over leak. A check shows all that are out.
func TestFault09EveryMethodIsAsked(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [leak] [uid=+] [time=100; count=1] [result=2; return=1]
rule : [direct] [uid @ black] [time=1; count=0;] [result=2; return=2]
rule : [base] [uid=+] [base=1; time=100; count=1] [result=2; return=3]
rule : [count] [uid=+] [time=100; count=1] [result=2; return=4]`)
	s.ask(store.Record, "uid", "9")
	_, d := s.ask(store.Check, "uid", "9")
	var out []string
	for _, u := range d.Usages {
		if !u.Allowed {
			out = append(out, u.Rule)
		}
	}
	if got, want := fmt.Sprint(out, d.Verdicts), "[koala-1 koala-3 koala-4] [koala-2]"; got != want {
		t.Errorf("out: got %s, want %s", got, want)
	}
}

// Koala misread these in silence.
func TestFault10ConditionsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		condition, value string
		want             bool
	}{
		{"k! = v", "v", false},
		{"k! = v", "w", true},
		{"k=10.*.0.*", "10.1.1.1", false},
		{"k=10.0.0.0/8", "10.1.1.1", true},
		{"k>5;k<10", "3", false},
	} {
		f := parse(t, "rule : [count] ["+tt.condition+"] [time=5; count=1] [result=2; return=1]")
		if got := matches(f.Set, "k", tt.value); got != tt.want {
			t.Errorf("%s with %q: got %t, want %t", tt.condition, tt.value, got, tt.want)
		}
		if len(f.Warnings) == 0 || f.Warnings[0].Rule != "koala-1" {
			t.Errorf("%s: got warnings %v, want one about it", tt.condition, f.Warnings)
		}
	}
	f := parse(t, "rule : [count] [k=+] [time=5; count=4294967298] [result=2; return=1]")
	if got := f.Rules[0].Quota.Value; got != 4294967298 {
		t.Errorf("a count beyond 32 bits: got %d, want 4294967298", got)
	}
}

// Koala's keys failed open when a rule's method changed under its return code.
func TestFault11ChangedMethodCounts(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [count] [uid=+] [time=100; count=1] [result=2; return=501]`)
	s.want("allow", store.Take, "uid", "7")
	s.want("koala-2 by koala-501", store.Take, "uid", "7")
	for _, rules := range []string{
		`rule : [leak] [uid=+] [time=100; count=1] [result=2; return=501]`,
		`rule : [base] [uid=+] [base=1; time=100; count=1] [result=2; return=501]`,
	} {
		if err := s.engine.SetRules(parse(t, rules).Set); err != nil {
			t.Fatal(err)
		}
		s.want("allow", store.Take, "uid", "7")
		s.want("koala-2 by koala-501", store.Take, "uid", "7")
	}
}

// Koala let everything pass while its store was unavailable. So does a rule
// of its file, and says so; and black lists go on.
func TestFault12OutageIsSaid(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [direct] [uid @ black] [time=1; count=0;] [result=2; return=103]
rule : [count] [uid=+] [time=5; count=1] [result=2; return=501]`)
	s.want("allow", store.Take, "uid", "7")
	s.store.out = true
	if got, d := s.ask(store.Take, "uid", "7"); got != "allow" || !d.Degraded {
		t.Errorf("without the store: got %q, degraded %t, want allow, degraded", got, d.Degraded)
	}
	s.want("koala-2 by koala-103", store.Take, "uid", "9")
	s.store.out = false
	s.want("koala-2 by koala-501", store.Take, "uid", "7")
	for _, r := range parse(t, `rule : [leak] [uid=+] [time=5; count=1] [result=2; return=1]`).Rules {
		if r.OnOutage != rule.OutageAllow {
			t.Errorf("%s: got on_outage %s, want allow", r.Name, r.OnOutage)
		}
	}
}
