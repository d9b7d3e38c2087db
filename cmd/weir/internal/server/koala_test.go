package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/redistest"
)

// koalaRules is a rule file of koala's, in koala's own words.
const koalaRules = `[dicts]
uid_whitelist : conf/uid_whitelist.dat
uip_blacklist : conf/uip_blacklist.dat

[rules]
rule : [direct] [uid @ uid_whitelist] [time=1; count=0;] [result=1; return=101]
rule : [direct] [uip @ uip_blacklist] [time=1; count=0;] [result=2; return=104]
rule : [count] [act=mall_score;uid=+] [time=3600; count=1;] [result=2; return=501]
rule : [count] [act=pair;uid=+] [time=3600; count=2;] [result=2; return=502]
rule : [leak] [act=leak;uid=+] [time=3600; count=10; erase1=1; erase2=2] [result=2; return=503]
rule : [base] [act=base;uid=+] [base=2; time=3600; count=1] [result=3; return=504]
rule : [count] [act=two;uid=+] [time=3600; count=1;] [result=2; return=106]
rule : [count] [act=two;uid=+] [time=3600; count=1;] [result=2; return=107]

[result]
0 : { "Ret_type":0, "Ret_code":0, "Err_no":0, "Err_msg":"", "Str_reason":"Allow", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
1 : { "Ret_type":1, "Ret_code":0, "Err_no":0, "Err_msg":"", "Str_reason":"Allow", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
2 : { "Ret_type":2, "Ret_code":0, "Err_no":10, "Err_msg":"", "Str_reason":"Deny", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
3 : { "Ret_type":3, "Ret_code":0, "Err_no":11, "Err_msg":"", "Str_reason":"Vcode", "Need_vcode":1, "Vcode_len":4, "Vcode_type":0, "Other":"", "Version":0 }
`

// koalaHome returns the rule file in a directory like koala's: rules and dicts
// are in conf, and paths start above it.
func koalaHome(t *testing.T) (rules string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "conf")
	if err := os.Mkdir(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(conf, "uid_whitelist.dat"), "2\r\n3\r\n")
	write(t, filepath.Join(conf, "uip_blacklist.dat"), "10.9.9.9\n")
	rules = filepath.Join(conf, "koala_rule.conf")
	write(t, rules, koalaRules)
	return rules
}

// koala is a service that speaks as koala does.
type koala struct {
	*service
	addr string
}

var koalaAddress = regexp.MustCompile(`koala=https?://(\S+)`)

// startKoala starts one. When it counts in Redis, that answers by then: on a busy
// machine a service can open its ports before.
func startKoala(t *testing.T, rules string, change func(*config.Config)) koala {
	t.Helper()
	redis := false
	s := start(t, func(c *config.Config) {
		c.Koala, c.KoalaListen = rules, "127.0.0.1:0"
		if change != nil {
			change(c)
		}
		redis = c.Store != ""
	})
	s.logs.await(t, 1, "koala=http")
	if redis {
		s.reachesStore(t)
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	return koala{s, koalaAddress.FindStringSubmatch(s.logs.text.String())[1]}
}

// get sends what koala's first client sends, which knows no host, and is the
// answer up to the end of the connection.
func (k koala) get(t *testing.T, uri string) answer {
	t.Helper()
	return k.send(t, "GET "+uri+" HTTP/1.1\r\nAccept: */*\r\n\r\n")
}

func (k koala) send(t *testing.T, request string) answer {
	t.Helper()
	conn := connect(t, k.addr)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: got %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Server"); got != "Koala-Server" || !resp.Close {
		t.Errorf("%q: got an answer of %q, closing %v, want koala's", request, got, resp.Close)
	}
	return answer{status: resp.StatusCode, text: string(body)}
}

// row returns a row of koalaRules as koala writes it.
func row(kind, code, errNo int, reason string, vcode, length int) string {
	return fmt.Sprintf(`{"Ret_type":%d,"Ret_code":%d,"Err_no":%d,"Err_msg":"","Str_reason":%q,"Need_vcode":%d,"Vcode_len":%d,"Vcode_type":0,"Other":"","Version":0}`,
		kind, code, errNo, reason, vcode, length)
}

func denied(code int) string { return row(2, code, 10, "Deny", 0, 0) }

var (
	unmatched = row(0, 0, 0, "Allow", 0, 0)
	within    = row(1, 0, 0, "Allow", 0, 0)
	counted   = `{"err_no":0, "err_msg":"OK"}`

	unreadable = strings.Replace(row(-1, 0, -1, "Error", 0, 0), `"Err_msg":""`, `"Err_msg":"argsJson: want [{\"Id\": \"0\", \"Arg\": \"name=value\"}]"`, 1)
)

// What was seen on the running program, in both clients' shapes.
func TestKoalaAnswers(t *testing.T) {
	t.Parallel()
	k := startKoala(t, koalaHome(t), nil)
	host, _, _ := net.SplitHostPort(k.addr)
	shapes := []string{"", "Host:" + host + "\r\n"}
	jobs := func(list ...string) string {
		for i, query := range list {
			list[i] = fmt.Sprintf(`{"Id":"%d","Arg":%q}`, i, url.QueryEscape(query))
		}
		return "/multi/browse?argsJson=" + url.QueryEscape("["+strings.Join(list, ",")+"]")
	}
	for i, header := range shapes {
		uid := fmt.Sprintf("&uid=%d", 70+i)
		for _, tc := range []struct {
			uri    string
			status int
			body   string
		}{
			{"/rule/browse", 200, unmatched},
			{"/rule/browse?act=mall_score" + uid, 200, within},
			{"/rule/update?act=mall_score" + uid, 200, counted},
			{"/rule/browse?act=mall_score" + uid, 200, denied(501)},
			{"/rule/browse?uid=2", 200, row(1, 101, 0, "Allow", 0, 0)},
			{"/rule/browse?uip=10.9.9.9", 200, denied(104)},
			{"/rule/update?act=two" + uid, 200, counted},
			{"/rule/browse_complete?act=two" + uid, 200, "[" + denied(106) + "," + denied(107) + "]"},
			{"/rule/browse_complete?act=mall_score&uid=1000", 200, "[" + unmatched + "]"},
			{"/nope", 404, "not found"},
			{"/Rule/browse", 404, "not found"},
			{"/rule/browse/x", 404, "not found"},
			// koala answers without a row, which its client takes for permission.
			{"/multi/browse", 400, unreadable},
			{"/multi/browse?argsJson=%5B", 400, unreadable},
			{"/monitor/alive?", 200, `{"errno": 0, "errmsg": "OK!"}`},
			// Fault 7: a parameter without = is no bypass, nor are blanks.
			{"/rule/browse?debug&act=mall_score" + uid, 200, denied(501)},
			{"/rule/browse?act=mall_score+" + uid + "%20", 200, denied(501)},
			// base: the third is the second one's.
			{"/rule/browse?act=base" + uid + "&_writeThrough=yes", 200, within},
			{"/rule/browse?act=base" + uid + "&_writeThrough=yes", 200, within},
			{"/rule/browse?act=base" + uid + "&_writeThrough=yes", 200, row(3, 504, 11, "Vcode", 1, 4)},
			// Fault 9: black lists, leak and base hold in multi.
			{jobs("act=mall_score"+uid, "uip=10.9.9.9", "act=base"+uid, "uid=2", "act=leak"+uid), 200, `[{"Id":"0","Result":` + denied(501) +
				`},{"Id":"1","Result":` + denied(104) + `},{"Id":"2","Result":` + row(3, 504, 11, "Vcode", 1, 4) +
				`},{"Id":"3","Result":` + row(1, 101, 0, "Allow", 0, 0) + `},{"Id":"4","Result":` + within + `}]`},
		} {
			a := k.send(t, "GET "+tc.uri+" HTTP/1.1\r\n"+header+"Accept: */*\r\n\r\n")
			if a.status != tc.status || a.text != tc.body {
				t.Errorf("%s: got %d %s\nwant %d %s", tc.uri, a.status, a.text, tc.status, tc.body)
			}
		}
	}
	// Beside it the JSON API answers by the same rules and counters.
	if a := call(t, "POST", k.api+"/v1/check", `{"attributes":{"act":"mall_score","uid":"70"}}`); a.json["outcome"] != "koala-2" {
		t.Errorf("got %s, want koala-2", a.text)
	}
}

// wantAdmitted writes through from 100 callers at once.
func (k koala) wantAdmitted(t *testing.T, act string, want int64) {
	t.Helper()
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if a := k.get(t, "/rule/browse?act="+act+"&uid=7&_writeThrough=yes"); a.text == within {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if got := admitted.Load(); got != want {
		t.Errorf("%s: got %d admitted, want %d", act, got, want)
	}
}

// Fault 1, at a limit of 2, and fault 3: leak admits exactly count.
func TestKoalaAdmitsTheLimit(t *testing.T) {
	t.Parallel()
	k := startKoala(t, koalaHome(t), nil)
	k.wantAdmitted(t, "pair", 2)
	k.wantAdmitted(t, "leak", 10)
}

// The same on Redis, where also fault 2 would show: keys without an end.
func TestKoalaAdmitsTheLimitOnRedis(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	k := startKoala(t, koalaHome(t), func(c *config.Config) { c.Store, c.StoreTimeout = "redis://"+n.Addr(), patience })
	k.wantAdmitted(t, "pair", 2)
	k.wantAdmitted(t, "leak", 10)
	keys := n.Must("KEYS", "*").([]any)
	if len(keys) == 0 {
		t.Fatal("got no keys, want counters")
	}
	for _, key := range keys {
		if strings.HasPrefix(key.(string), "weir:kept:") {
			continue // not a counter: what the service keeps of events
		}
		if ttl := n.Must("PTTL", key.(string)).(int64); ttl < 0 {
			t.Errorf("%s: got time to live %d, want an end", key, ttl)
		}
	}
}

// Fault 12: without its store koala's rules allow, as their on_outage says and
// not because something went wrong; alive tells of it.
func TestKoalaWithoutItsStore(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	k := startKoala(t, koalaHome(t), func(c *config.Config) { c.Store, c.StoreTimeout = "redis://"+n.Addr(), 10*time.Second })
	if a := k.get(t, "/monitor/alive"); a.status != 200 {
		t.Fatalf("with the store: got %d %s", a.status, a.text)
	}
	n.Kill()
	for uri, want := range map[string]string{
		"/rule/browse?act=mall_score&uid=7": within,
		"/rule/update?act=mall_score&uid=7": counted,
		"/rule/browse?uip=10.9.9.9":         denied(104), // needs no store
	} {
		if a := k.get(t, uri); a.status != 200 || a.text != want {
			t.Errorf("%s: got %d %s, want %s", uri, a.status, a.text, want)
		}
	}
	if a := k.get(t, "/monitor/alive"); a.status != 500 || a.text != `{"errno": -1, "errmsg": "redis-error!"}` {
		t.Errorf("got %d %s, want that the store is away", a.status, a.text)
	}
	n.Restart()
	redistest.Eventually(t, "alive again", func() bool { return k.get(t, "/monitor/alive").status == 200 })
}

// Koala's calls wait for Redis as long as koala does, and other calls do not.
func TestKoalaWaitsLonger(t *testing.T) {
	t.Parallel()
	p := redistest.Through(t, redistest.Server(t))
	k := startKoala(t, koalaHome(t), func(c *config.Config) {
		c.Store, c.Nodes, c.StoreTimeout, c.KoalaTimeout = "redis://"+p.Addr(), 1, 50*time.Millisecond, 20*time.Second
	})
	p.Delay(100 * time.Millisecond)
	for i, want := range []string{within, within, denied(502)} {
		if a := k.get(t, "/rule/browse?act=pair&uid=7&_writeThrough=yes"); a.text != want {
			t.Errorf("call %d: got %s, want %s", i, a.text, want)
		}
	}
	const degraded = "\nweir_decisions_degraded_total{namespace=\"default\"} "
	if text := call(t, "GET", k.admin+"/metrics", "").text; !strings.Contains(text, degraded+"0\n") {
		t.Error("koala's calls were degraded")
	}
	if a := call(t, "POST", k.api+"/v1/take", `{"attributes":{"act":"pair","uid":"7"}}`); a.json["degraded"] != true {
		t.Errorf("another call: got %s, want it degraded", a.text)
	}
}
