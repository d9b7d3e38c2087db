package koalafile_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// direct decides at once; the rules after it go on counting.
func TestDirect(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [direct] [uid @ white] [time=1; count=0;] [result=1; return=101]
rule : [direct] [uid @ black] [time=1; count=0;] [result=2; return=103]
rule : [count] [uid=+] [time=5; count=1;] [result=2; return=501]`)
	s.want("koala-1 by koala-101", store.Take, "uid", "1")
	s.want("koala-1 by koala-101", store.Take, "uid", "1")
	if _, d := s.ask(store.Check, "uid", "1"); len(d.Usages) != 1 || d.Usages[0].Used != 2 {
		t.Errorf("count after a white list: got %+v, want 2 used", d.Usages)
	}
	s.want("koala-2 by koala-103", store.Take, "uid", "9")
	s.ask(store.Record, "uid", "9")
	if _, d := s.ask(store.Check, "uid", "9"); len(d.Usages) != 1 || d.Usages[0].Used != 1 {
		t.Errorf("count after a black list, of an update and a denied take: got %+v, want 1 used", d.Usages)
	}
	s.want("allow", store.Take, "uid", "7")
}

// count begins with the first hit and lasts its time.
func TestCount(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [count] [act=mall;uid=+] [time=5; count=1;] [result=2; return=501]
rule : [count] [act=mall;uid=+] [time=60; count=3;] [result=3; return=502]`)
	s.want("allow", store.Check, "act", "mall", "uid", "7")
	s.want("allow", store.Record, "act", "mall", "uid", "7")
	s.want("koala-2 by koala-501", store.Take, "act", "mall", "uid", "7")
	s.want("allow", store.Take, "act", "mall", "uid", "8")
	s.want("allow", store.Take, "act", "other", "uid", "7")
	s.pass(5*time.Second - time.Microsecond)
	s.want("koala-2 by koala-501", store.Take, "act", "mall", "uid", "7")
	s.pass(time.Microsecond)
	s.want("allow", store.Take, "act", "mall", "uid", "7")
	s.pass(5 * time.Second)
	s.want("allow", store.Take, "act", "mall", "uid", "7")
	s.pass(5 * time.Second)
	s.want("koala-3 by koala-502", store.Take, "act", "mall", "uid", "7")
}

// {~} has the listed values share a counter.
func TestCombined(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [count] [act=ask,answer{~};uid=+] [time=60; count=2] [result=2; return=1]
rule : [count] [act=ask,answer;uid=+] [time=60; count=2] [result=3; return=2]`)
	s.want("allow", store.Take, "act", "ask", "uid", "7")
	s.want("allow", store.Take, "act", "answer", "uid", "7")
	s.want("koala-2 by koala-1", store.Take, "act", "ask", "uid", "7")
	if _, d := s.ask(store.Check, "act", "ask", "uid", "7"); d.Usages[1].Used != 1 {
		t.Errorf("its own counter: got %d used, want 1", d.Usages[1].Used)
	}
}

// base begins to count at the hit of the day that reaches it.
func TestBase(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [base] [act=ask;ip=+] [base=30; time=2; count=1;] [result=2; return=204]`)
	for range 30 {
		s.want("allow", store.Take, "act", "ask", "ip", "192.0.2.1")
	}
	s.want("koala-2 by koala-204", store.Take, "act", "ask", "ip", "192.0.2.1")
	s.pass(2 * time.Second)
	s.want("allow", store.Take, "act", "ask", "ip", "192.0.2.1")
	s.want("koala-2 by koala-204", store.Take, "act", "ask", "ip", "192.0.2.1")
	s.at("2026-11-21 00:00:00")
	for range 30 {
		s.want("allow", store.Take, "act", "ask", "ip", "192.0.2.1")
	}
	s.want("koala-2 by koala-204", store.Take, "act", "ask", "ip", "192.0.2.1")
}

// leak takes back what a feedback says.
func TestLeakFeedback(t *testing.T) {
	t.Parallel()
	s := open(t, `
rule : [leak] [act=index;ip=+] [time=100; count=10; erase1=2; erase2=4] [result=2; return=1201]
rule : [count] [act=index;ip=+] [time=100; count=20] [result=2; return=1202]`)
	for range 10 {
		s.want("allow", store.Take, "act", "index", "ip", "192.0.2.1")
	}
	s.want("koala-2 by koala-1201", store.Take, "act", "index", "ip", "192.0.2.1")
	used := func() [2]int64 {
		_, d := s.ask(store.Check, "act", "index", "ip", "192.0.2.1")
		return [2]int64{d.Usages[0].Used, d.Usages[1].Used}
	}
	for _, tt := range []struct {
		feedback string
		want     [2]int64
	}{{"erase1", [2]int64{8, 10}}, {"erase2", [2]int64{4, 10}}} {
		r := weir.Request{Attributes: weir.Attributes("act", "index", "ip", "192.0.2.1"), Feedback: tt.feedback}
		if _, err := s.engine.Refund(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := used(); got != tt.want {
			t.Errorf("used after %s: got %v, want %v", tt.feedback, got, tt.want)
		}
	}
}

// A row that lets pass is what the caller is shown; a take is denied all the
// same.
func TestRowThatLetsPass(t *testing.T) {
	t.Parallel()
	s := open(t, `rule : [count] [uid=+] [time=5; count=1;] [result=1; return=7]`)
	s.want("allow", store.Take, "uid", "7")
	s.want("koala-1-over by koala-7", store.Take, "uid", "7")
	if _, d := s.ask(store.Take, "uid", "7"); d.Allowed {
		t.Error("got allowed, want denied")
	}
}

// Which values a condition holds for, after koala's definition of it.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		condition string
		holds     []string
		fails     []string
	}{
		{"k=+", []string{"0", "x", " x "}, []string{"", " ", "\t"}},
		{"k=a,b", []string{"a", "b", " a", "b\t"}, []string{"", "c", "A", "a,b"}},
		{"k=5", []string{"5"}, []string{"05", "5.0", "+5"}},
		{"k!=a,b", []string{"c", "ab"}, []string{"", " ", "a", " b "}},
		{"k @ black", []string{"9", "mallory", " mallory ", "203.0.113.7", "::ffff:203.0.113.7"}, []string{"", "99", "203.0.112.7"}},
		{"k !@ black", []string{"99", "203.0.112.7"}, []string{"", "9", "mallory", "203.0.113.7"}},
		{"k<5", []string{"4", "-9", "004", " 4 ", "-9223372036854775808"}, []string{"", "5", "4.5", "4e0", "x", "10.0.0.1", "-99999999999999999999"}},
		{"k>5", []string{"6", "+6", "9007199254740993", "9223372036854775807"}, []string{"", "5", "5.5", "6.0", "99999999999999999999", "0x10"}},
		{"k>9007199254740990", []string{"9007199254740991", "9007199254740993"}, []string{"9007199254740990", "9007199254740989"}},
		{"k<9007199254740991", []string{"9007199254740990"}, []string{"9007199254740991", "9007199254740993"}},
		{"k=1-5,7-9", []string{"1", "5", "7", "9", "05"}, []string{"0", "6", "10", "5.5", "", "-1"}},
		{"k=1-3,5,7-9,20-30", []string{"1", "3", "5", "8", "20", "30"}, []string{"4", "6", "10", "19", "31"}},
		{"k!=1-5,7-9", []string{"0", "6", "10", "-1", "9223372036854775807"}, []string{"1", "5", "7", "9", "x", "6.5", ""}},
		{"k=1-9223372036854775807", []string{"1", "9223372036854775807"}, []string{"0", "-1", "18446744073709551616"}},
		{"k=10.0.0.1-10.0.0.9,192.168.1.*", []string{"10.0.0.1", "10.0.0.9", "192.168.1.255", " 192.168.1.0 ", "010.0.0.1", "167772161"}, []string{"10.0.0.0", "10.0.0.10", "192.168.2.1", "167772160", "x"}},
		{"k!=10.0.0.1-10.0.0.9", []string{"10.0.0.10", "010.0.0.10", "167772170", "7", "-1", "4294967296", "::1"}, []string{"10.0.0.1", "010.0.0.1", "167772161", "x", ""}},
		{"k={ask}", []string{"ask"}, []string{"{ask}"}},
		{"k=~a,{b},c{~}", []string{"a", "{b}", "c"}, []string{"~a", "b", "c{~}"}},
		{"k=10.*.0.*", []string{"10.1.0.1", "10.255.0.255"}, []string{"10.1.1.1", "11.1.0.1"}},
		{"k=192.168.0.1/24", []string{"192.168.0.0", "192.168.0.255"}, []string{"192.168.1.0", "192.168.0.1/24"}},
		{"k=2001:db8::/32", []string{"2001:db8::1", "2001:0db8:0::1"}, []string{"2001:db9::1", "10.0.0.1"}},
		{"k!=10.0.0.0/8", []string{"11.0.0.1", "2001:db8::1"}, []string{"10.0.0.1", "x", ""}},
		{"k>5;k<10", []string{"6", "9"}, []string{"5", "10", "11", "1"}},
		{"k=::1,2001:db8::1", []string{"::1", "0:0:0:0:0:0:0:1"}, []string{"::2"}},
		{"k=a::b,c::d::e", []string{"a::b", "c::d::e"}, []string{"a:0::b"}},
		{"k=提问", []string{"提问"}, []string{"提"}},
	} {
		set := parse(t, "rule : [direct] ["+tt.condition+"] [] [result=2; return=1]").Set
		for _, v := range tt.holds {
			if !matches(set, "k", v) {
				t.Errorf("%s with %q: got no match, want one", tt.condition, v)
			}
		}
		for _, v := range tt.fails {
			if matches(set, "k", v) {
				t.Errorf("%s with %q: got a match, want none", tt.condition, v)
			}
		}
	}
}
