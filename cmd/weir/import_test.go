package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// FuzzImportKoala imports random koala rule files. Each resulting rules file must
// decide and count as the koala file does.
func FuzzImportKoala(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		t.Parallel()
		g := koalaGenerator{rand.New(rand.NewPCG(seed, 1))}
		dir := t.TempDir()
		for name, text := range koalaDicts {
			put(t, filepath.Join(dir, name), text)
		}
		src := g.file()
		conf, rules := filepath.Join(dir, "koala_rule.conf"), filepath.Join(dir, "rules.yaml")
		put(t, conf, src)
		want, err := koalafile.Parse(conf, []byte(src), os.ReadFile)
		if err != nil {
			t.Fatalf("got\n%v\nfor\n%s", err, src)
		}
		var out, errs bytes.Buffer
		if status := run([]string{"import", "koala", conf}, nil, &out, &errs); status != 0 {
			t.Fatalf("got status %d and\n%s\nfor\n%s", status, &errs, src)
		}
		put(t, rules, out.String())
		got, err := rulefile.Load(rules)
		if err != nil {
			t.Fatalf("got\n%v\nfor\n%s", err, src)
		}
		sameRules(t, got.Set, want)
		p := newPair(t, got.Set, want.Set)
		for step := range 200 {
			if !p.step(t, g) {
				t.Fatalf("in step %d of\n%s\nimported as\n%s", step, src, &out)
			}
		}
	})
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameRules compares the rules' identities, and the outcomes.
func sameRules(t *testing.T, got *rule.Set, want *koalafile.File) {
	t.Helper()
	if got.Len() != want.Set.Len() {
		t.Fatalf("got %d rules, want %d", got.Len(), want.Set.Len())
	}
	for i := range got.Len() {
		if got.Compiled().ID(i) != want.Set.Compiled().ID(i) {
			t.Errorf("rule %d: got ID %q, want %q", i, got.Compiled().ID(i), want.Set.Compiled().ID(i))
		}
		if got, want := got.Rule(i).Code, want.Set.Rule(i).Code; got != want {
			t.Errorf("rule %d: got code %d, want %d", i, got, want)
		}
	}
	for name := range want.Outcomes {
		g, _ := got.Outcome(name)
		w, _ := want.Set.Outcome(name)
		if !reflect.DeepEqual(g, w) {
			t.Errorf("outcome %s: got %+v %s, want %+v %s", name, g, g.Body, w, w.Body)
		}
	}
}

// pair is two engines that get the same requests at the same instants.
type pair struct {
	got, want *weir.Engine
	now       *window.Instant
}

func newPair(t *testing.T, got, want *rule.Set) *pair {
	t.Helper()
	now := window.At(time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)) // an hour to midnight in Shanghai
	engine := func(set *rule.Set) *weir.Engine {
		s := memstore.New(memstore.WithClock(func() window.Instant { return now }))
		e, err := weir.NewEngine(set, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return e
	}
	return &pair{engine(got), engine(want), &now}
}

// step lets some time pass, sends one request to both engines, and compares the
// answers and the counters.
func (p *pair) step(t *testing.T, g koalaGenerator) bool {
	t.Helper()
	*p.now = p.now.Add([]time.Duration{0, 0, 100 * time.Millisecond, time.Second, time.Minute, time.Hour}[g.IntN(6)])
	verb := []store.Verb{store.Check, store.Record, store.Take, store.Take, store.Refund}[g.IntN(5)]
	r := weir.Request{Attributes: g.request()}
	if verb == store.Refund {
		r.Feedback = g.pick("", "erase1", "erase2", "erase3")
	}
	var got, want weir.Decision
	errGot := p.got.Do(t.Context(), verb, &r, &got)
	errWant := p.want.Do(t.Context(), verb, &r, &want)
	got.Rules, want.Rules = nil, nil // two equal sets, not one
	if !reflect.DeepEqual(got, want) || fmt.Sprint(errGot) != fmt.Sprint(errWant) {
		t.Errorf("%v %+v: got %+v, %v, want %+v, %v", verb, r, got, errGot, want, errWant)
		return false
	}
	for i := range p.want.Rules().Len() {
		name := p.want.Rules().Rule(i).Name
		got, errGot := p.got.Usage(t.Context(), name, r.Attributes)
		want, errWant := p.want.Usage(t.Context(), name, r.Attributes)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(errGot) != fmt.Sprint(errWant) {
			t.Errorf("usage of %s for %+v: got %+v, %v, want %+v, %v", name, r, got, errGot, want, errWant)
			return false
		}
	}
	return true
}

// koalaGenerator generates koala rule files, and requests.
type koalaGenerator struct{ *rand.Rand }

func (g koalaGenerator) pick(words ...string) string { return words[g.IntN(len(words))] }

var koalaDicts = map[string]string{
	"users.dat": "1\n 3 \n\n5\r\n北京\n",
	"nets.dat":  "10.0.0.0/30\n192.168.1.*\nfe80::1\n10.0.0.8-10.0.0.9\n",
	"tags.dat":  "#a\ntrue #b\n007\nnull\n10.0.0.0/99\n",
}

// file returns a rule file of up to eight rules.
func (g koalaGenerator) file() string {
	var b strings.Builder
	b.WriteString("# Of the site.\n[dicts]\nusers : users.dat\nnets:nets.dat\n tags : tags.dat \n[rules]\n")
	for i := range 1 + g.IntN(8) {
		b.WriteString(g.pick("", "\n", "# a: [comment]\n", "## 注释\n# \"2\"\n"))
		fmt.Fprintf(&b, "rule : %s [result=%d; return=%d]\n", g.rule(), 1+g.IntN(4), 101+i)
	}
	b.WriteString(`[result]
1 : {"Ret_type":1, "Str_reason":"Allow"}
2 : { "Ret_type":2, "Err_no":10, "Err_msg":"<a> & \"b\"", "Str_reason":"稍后: 再试", "Other":"1.50", "Version":7 }
3 : {"RetType":3, "ErrNo":20, "StrReason":"Vcode", "NeedVcode":1, "VcodeLen":4}
4 : {"Ret_type":4, "Str_reason":" yes"}
`)
	return b.String()
}

// rule returns a rule's method, keys and numbers.
func (g koalaGenerator) rule() string {
	keys := g.conditions()
	seconds, count := g.pick("1", "5", "60", "3600", "86400"), g.pick("1", "2", "3", "150")
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf("[direct] [%s] [time=1; count=0;]", keys)
	case 1:
		return fmt.Sprintf("[base] [%s] [base=%d; time=%s; count=%s;]", keys, 1+g.IntN(4), seconds, count)
	case 2:
		return fmt.Sprintf("[leak] [%s] [time=%s; count=%s; erase1=%d; erase2=4]", keys, seconds, count, g.IntN(3))
	}
	return fmt.Sprintf("[count] [%s] [time=%s; count=%s]", keys, seconds, count)
}

// conditions returns one to three conditions, sometimes two on one key.
func (g koalaGenerator) conditions() string {
	conditions := []string{
		"act=ask,answer", "act=ask", "act!=vote", "act = + ", "act !=vote,true", "act! = ask",
		"uid=+", "uid @ users", "uid !@ users", "uid<5", "uid>3", "uid=1-3,7,9-12", "uid!=2-4", "uid-IN-users", "uid-NOTIN-tags",
		"ip=10.0.0.0/29", "ip=10.0.0.1-10.0.0.9,192.168.1.*", "ip @ nets", "ip !@ nets", "ip=10.*.0.*", "ip!=10.0.0.1-10.0.0.5", "ip=+",
		"tag @ tags", "tag=true,null,~,1.50,007,a b,#c", "tag=北京", "tag=+", `tag!="q",'r',a\b`,
	}
	g.Shuffle(len(conditions), func(i, j int) { conditions[i], conditions[j] = conditions[j], conditions[i] })
	some := conditions[:1+g.IntN(3)]
	for i := range some {
		some[i] += g.pick("", "", "{~}", "{*}")
	}
	return strings.Join(some, g.pick(";", "; ")) + g.pick("", ";")
}

// request returns the attributes of a random request, also empty and odd ones.
func (g koalaGenerator) request() []weir.Attribute {
	return weir.Attributes(
		"act", g.pick("ask", "ask", "answer", "vote", "true", ""),
		"uid", g.pick("1", "3", " 3", "5 ", "9", "12", "-4", "abc", "北京", ""),
		"ip", g.pick("10.0.0.1", "10.0.0.8", "10.7.0.7", "192.168.1.77", "010.7.0.7", "167772161", "-1", "fe80::1", "nowhere", ""),
		"tag", g.pick("#a", "true #b", "true", "null", "~", "1.5", "1.50", "007", "7", "a b", "#c", "北京", "r", ""),
	)
}

// TestImportAsksForUTF8 imports files that are not UTF-8: the fault has a place.
func TestImportAsksForUTF8(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "gbk.dat"), "ok\n a\xb1\xb1\n")
	conf := filepath.Join(dir, "koala.conf")
	put(t, conf, "[dicts]\nd : gbk.dat\n[rules]\nrule : [direct] [城=\xb1\xb1] [time=1; count=0] [result=1; return=1]\n")
	var out, errs bytes.Buffer
	status := run([]string{"import", "koala", conf}, nil, &out, &errs)
	lines := strings.Split(errs.String(), "\n")
	for _, place := range []string{conf + ":4:20: ", filepath.Join(dir, "gbk.dat") + ":2:3: "} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, place+"the line is not UTF-8") }) {
			t.Errorf("got\n%s\nwant a fault at %s", &errs, place)
		}
	}
	if status != exitError || out.Len() > 0 {
		t.Errorf("got status %d and %q, want %d and nothing", status, &out, exitError)
	}
}
