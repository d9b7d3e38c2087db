package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// outage takes op and returns the expected outage.
func outage(t *testing.T, s store.Store, verb store.Verb, op store.Op) string {
	t.Helper()
	err := store.Do(context.Background(), s, verb, []store.Op{op})
	var out *store.OutageError
	if !errors.As(err, &out) {
		t.Fatalf("%v: got error %v, want an outage", verb, err)
	}
	return err.Error()
}

func wantIn(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("got %q, want %q in it", got, w)
		}
	}
}

func take(t *testing.T, s store.Store, op store.Op) bool {
	t.Helper()
	ops := []store.Op{op}
	if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
		t.Fatal(err)
	}
	return ops[0].Result.Allowed
}

// refusalOf returns the error with which servers refuse a store, for which Open does not wait on a busy machine.
func refusalOf(t *testing.T, url string) (err error) {
	t.Helper()
	redistest.Eventually(t, url+" is refused", func() bool {
		var s *redisstore.Store
		if s, err = redisstore.Open(t.Context(), url); err == nil {
			s.Close()
		}
		return err != nil
	})
	return err
}

// A wrong password is an error when the store is opened, which does not repeat it.
// A password that changes later causes outages, until it is right again.
func TestPassword(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--requirepass", "right")
	for _, login := range []string{":wrong-one@", "ann:wrong-one@", ""} {
		if err := refusalOf(t, "redis://"+login+n.Addr()); strings.Contains(err.Error(), "wrong-one") {
			t.Errorf("login %q: the password is in %q", login, err)
		}
	}
	n.Must("ACL", "SETUSER", "weir", "on", ">p@ss/w?rd", "~weir:*", "+@all")
	s := openURL(t, "redis://weir:p%40ss%2Fw%3Frd@"+n.Addr()+"?timeout=1s")
	connected(t, s, 1)
	op := hourly(10, "rule", "k")
	take(t, s, op)
	n.Must("ACL", "SETUSER", "weir", "resetpass", ">other")
	n.Must("CLIENT", "KILL", "USER", "weir")
	redistest.Eventually(t, "the login is refused", func() bool {
		err := store.Do(context.Background(), s, store.Take, []store.Op{op})
		return err != nil && strings.Contains(err.Error(), "WRONGPASS")
	})
	n.Must("ACL", "SETUSER", "weir", ">p@ss/w?rd")
	redistest.Eventually(t, "the login is right again", func() bool {
		return store.Do(context.Background(), s, store.Take, []store.Op{op}) == nil
	})
}

// A URL of another kind of servers is an error.
func TestKindsOfServers(t *testing.T) {
	t.Parallel()
	c, g, n := redistest.Cluster(t, 3, 0), redistest.Sentinel(t), redistest.Server(t)
	for url, want := range map[string]string{
		"redis://" + c.Masters[0].Addr():              "want redis+cluster://",
		"redis://" + g.Sentinels[0].Addr():            "want redis+sentinel://",
		"redis+cluster://" + n.Addr():                 "cluster support disabled",
		"redis+sentinel://" + n.Addr() + "/main":      "unknown command",
		"redis+sentinel://" + g.Addrs() + "/somebody": "No such master with that name",
		"redis://" + n.Addr() + "/99":                 "DB index is out of range",
	} {
		wantIn(t, refusalOf(t, url).Error(), want)
	}
}

// The rights that docs/guides/redis.md names are enough, and nothing tries a command without a
// right: the server would log that.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must(append([]string{"ACL", "SETUSER", "weir", "on", ">secret"}, documentedRights(t)...)...)
	s := openURL(t, "redis://weir:secret@"+n.Addr()+"?timeout=20s")
	connected(t, s, 1)
	for name, w := range map[string]window.Window{
		"sliding": window.Sliding(time.Hour), "cells": window.Cells(time.Hour, 0), "fixed": window.Fixed(time.Hour),
		"calendar": window.Calendar(window.Day, nil), "bucket": window.Bucket(time.Hour, 0),
	} {
		for _, m := range []window.Measure{window.Count, window.Sum, window.Distinct} {
			limit, err := window.Compile(window.Limit{Quota: 1000, Measure: m, Window: w})
			if err != nil {
				continue
			}
			op := store.Op{Space: store.NewSpace("", name+m.String(), "", 0), Limit: limit, Key: []byte("k"), N: 1}
			for i := range 100 { // more members than one string holds
				op.Member = []byte{byte(i)}
				take(t, s, op)
			}
			if err := store.Do(t.Context(), s, store.Refund, []store.Op{op}); err != nil {
				t.Errorf("%s of %v: refund: %v", name, m, err)
			}
			if _, _, err := s.Peek(t.Context(), &op); err != nil {
				t.Errorf("%s of %v: peek: %v", name, m, err)
			}
			if err := s.Forget(t.Context(), &op); err != nil {
				t.Errorf("%s of %v: forget: %v", name, m, err)
			}
		}
	}
	version, err := s.Keep(t.Context(), "r", 0, []string{"a", "b"}, []string{"1", "2"})
	if err == nil {
		_, err = s.Keep(t.Context(), "r", version, []string{"a"}, []string{""})
	}
	if err != nil {
		t.Errorf("a register: %v", err)
	}
	if fields, _, _, _, err := s.Kept(t.Context(), "r", [2]int64{}, 10); err != nil || len(fields) != 2 {
		t.Errorf("a register: got %q and %v, want both fields", fields, err)
	}
	if entries, err := s.Log(t.Context(), "l", time.Hour, []window.Instant{window.Instant(time.Now().UnixMicro())}, []string{"e"}, 0, 1); err != nil || len(entries) != 1 {
		t.Errorf("a log: got %q and %v, want one entry", entries, err)
	}
	if err := s.RotateSecret(t.Context(), time.Hour); err != nil {
		t.Errorf("a secret: %v", err)
	}

	n.Must("ACL", "SETUSER", "weir", "+info", "+scan", "+script|load") // for exports; the page has these, too
	op := store.Op{Space: store.NewSpace("", "exported", "", 0), Limit: window.MustCompile(window.Limit{Quota: 10, Window: window.Fixed(time.Hour)}), Key: []byte("k"), N: 1}
	take(t, s, op)
	found := 0
	for after := []byte(nil); ; {
		after, err = s.Keys(t.Context(), &op, after, func([]byte, window.State, window.Instant) { found++ })
		if err != nil || after == nil {
			break
		}
	}
	if err != nil || found != 1 {
		t.Errorf("an export: got %d keys and %v, want one", found, err)
	}
	if refused := n.Must("ACL", "LOG").([]any); len(refused) > 0 {
		t.Errorf("the server has refused %v", refused)
	}
}

// A connection begins with only HELLO. CLIENT SETINFO, which newer servers know, needs a
// right.
func TestGreetingNeedsNoRight(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer conn.Close()
		b := make([]byte, 64<<10)
		n, _ := conn.Read(b) // all that a connection begins with is written at once
		got <- string(b[:n])
	}()
	openURL(t, at(l.Addr().String()))
	if greeting := <-got; !strings.Contains(greeting, "HELLO") || strings.Count(greeting, "*") != 1 {
		t.Errorf("got %q, want only HELLO", greeting)
	}
}

// A value of another program under weir's key stays, and is an error.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	connected(t, s, 1)
	op := hourly(10, "rule", "k")
	take(t, s, op)
	key := fmt.Sprint(n.Must("KEYS", "weir:*").([]any)[0])
	for _, foreign := range [][]string{{"RPUSH", key, "mine"}, {"SET", key, "mine"}} {
		n.Must("DEL", key)
		n.Must(foreign...)
		before := n.Must("DUMP", key)
		for range 10 { // more than calls without an answer that cut a node off
			wantIn(t, outage(t, s, store.Take, op), key, "delete it or use another prefix")
			err := store.Do(t.Context(), s, store.Take, []store.Op{op})
			var about interface{ KeyText() string } // by which logs find the key
			if !errors.As(err, &about) || about.KeyText() != strconv.Quote(key) {
				t.Errorf("got error %v, want it to mark the key", err)
			}
		}
		take(t, s, hourly(10, "rule", "other")) // others are not concerned
		if after := n.Must("DUMP", key); after != before {
			t.Errorf("%v: the key was changed", foreign)
		}
	}
	n.Must("DEL", key)
	take(t, s, op)
}

// A server that is none of Redis is named as such.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	s := openURL(t, at(web.Listener.Addr().String()))
	wantIn(t, outage(t, s, store.Take, hourly(quota, "rule", "k")), `not a Redis server: it answers "HTTP/1.1 400 Bad Request"`)
	if got := s.Nodes()[0].Outages; got["refused"] != 1 {
		t.Errorf("reasons: got %v, want refused", got)
	}
	for answer, want := range map[string]string{
		"<!DOCTYPE html>\r\n":              `it answers "<!DOCTYPE html>"`,           // to HTTP of the first version
		"\x15\x03\x01\x00\x02\x02\x46\r\n": `it answers "\x15\x03\x01\x00\x02\x02F"`, // TLS
	} {
		s := openURL(t, at(answering(t, answer)))
		wantIn(t, outage(t, s, store.Take, hourly(quota, "rule", "k")), "not a Redis server: "+want)
	}
}

// A URL with TLS for a server without TLS, which waits for more or answers in its own way.
func TestServerWithoutTLS(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]store.Reason{
		redistest.Server(t).Addr():              "circuit-open", // no call is sent
		answering(t, "-ERR Protocol error\r\n"): "refused",
	} {
		s := opening(t, "rediss://"+addr)
		redistest.Eventually(t, "the reason is known", func() bool {
			return strings.Contains(outage(t, s, store.Take, hourly(quota, "rule", "k")), "TLS handshake")
		})
		if got := s.Nodes()[0].Outages; got[want] == 0 {
			t.Errorf("reasons: got %v, want %s", got, want)
		}
	}
}

// answering returns the address of a server that says text to each connection.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			all.Go(func() { // until the other end is closed
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// A server that has too many clients closes new connections, and says why.
func TestTooManyClients(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	take(t, s, op)
	n.Must("CONFIG", "SET", "maxclients", "1")
	killClients(n)
	redistest.Eventually(t, "the reason is known", func() bool {
		err := store.Do(t.Context(), s, store.Take, []store.Op{op})
		return err != nil && strings.Contains(err.Error(), "max number of clients reached") && s.Nodes()[0].Outages["refused"] > 0
	})
	n.Must("CONFIG", "SET", "maxclients", "100")
	redistest.Eventually(t, "calls are answered", func() bool { return store.Do(t.Context(), s, store.Take, []store.Op{op}) == nil })
}

// A server that has room for none or for a part of the connections when a store is opened
// may have room later: that is no error. With a part of them calls are answered.
func TestOpenWithTooManyClients(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	op := hourly(quota, "rule", "k")
	for most := 1; most <= 5; most++ { // one is the test's own
		n.Must("CONFIG", "SET", "maxclients", fmt.Sprint(most))
		s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
		if most > 1 {
			take(t, s, op)
		} else {
			wantIn(t, outage(t, s, store.Take, op), "max number of clients reached")
		}
		s.Close()
		redistest.Eventually(t, "the connections are closed", func() bool { return n.Info("connected_clients") == "1" })
	}
}

// A replica answers checks and refuses to count.
func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	replica := primary.Replica()
	s := openURL(t, "redis://"+replica.Addr()+"?timeout=1s")
	op := hourly(10, "rule", "k")
	if got := used(t, s, op); got != 0 {
		t.Errorf("check: got %d used, want 0", got)
	}
	wantIn(t, outage(t, s, store.Take, op), "READONLY", replica.Addr())
	replica.Must("REPLICAOF", "NO", "ONE")
	take(t, s, op)
}

// A server without memory refuses to count: that is an outage.
func TestMemoryIsFull(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--maxmemory-policy", "noeviction")
	s := openURL(t, "redis://"+n.Addr()+"?timeout=1s")
	connected(t, s, 1)
	bound(t, n)
	fill(t, n)
	wantIn(t, outage(t, s, store.Take, hourly(10, "rule", "k")), "OOM")
	n.Must("FLUSHALL", "SYNC")
	take(t, s, hourly(10, "rule", "k"))
}

// bound gives the server room for 2 MB more than it uses.
func bound(t *testing.T, n *redistest.Node) {
	t.Helper()
	uses, err := strconv.Atoi(n.Info("used_memory"))
	if err != nil {
		t.Fatal(err)
	}
	n.Must("CONFIG", "SET", "maxmemory", strconv.Itoa(uses+2<<20))
}

// fill writes keys of another program until the server has no room.
func fill(t *testing.T, n *redistest.Node) {
	t.Helper()
	size := 10_000
	for i := range 100_000 {
		if _, err := n.Do("SET", fmt.Sprint("filler", i), strings.Repeat("x", size), "EX", "60"); err != nil {
			if size /= 10; size == 0 {
				return
			}
		}
		if n.Info("evicted_keys") > "1" {
			return
		}
	}
	t.Fatal("the server has room without end")
}

// A key that a server evicts is as good as unused, so a full key may be admitted
// again. volatile-ttl evicts the keys that end first; allkeys-lru any key.
func TestEviction(t *testing.T) {
	t.Parallel()
	for policy, keeps := range map[string]bool{"volatile-ttl": true, "allkeys-lru": false} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			n := redistest.Server(t, "--maxmemory-policy", policy, "--maxmemory-samples", "64")
			s := openURL(t, "redis://"+n.Addr()+"?timeout=1s")
			connected(t, s, 1)
			op := hourly(1, "rule", "k")
			take(t, s, op)
			bound(t, n)
			key := fmt.Sprint(n.Must("KEYS", "weir:*").([]any)[0])
			for i := 0; i < 3000 || !keeps && n.Must("EXISTS", key) != int64(0); i++ {
				// Keys that end within the minute.
				n.Must("SET", fmt.Sprint("short", i), strings.Repeat("x", 2000), "PX", "60000")
			}
			if n.Info("evicted_keys") == "0" {
				t.Fatal("nothing was evicted")
			}
			if denied := !take(t, s, op); denied != keeps {
				t.Errorf("full key: got denied %v, want %v", denied, keeps)
			}
		})
	}
}

// Many members are kept in several keys. One can be evicted without the others:
// what is left is as good as nothing, for takes as for reads.
func TestHalfEviction(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	op := hourly(80, "rule", "k")
	limit := *op.Limit.Limit
	limit.Measure = window.Distinct
	op.Limit = window.MustCompile(limit)
	for _, suffix := range []string{"", ":z"} {
		for i := range 80 {
			op.Member = fmt.Append(nil, i)
			take(t, s, op)
		}
		if got := used(t, s, op); got != 80 {
			t.Fatalf("got %d members, want 80", got)
		}
		n.Must("DEL", redisstore.KeyName("weir", &op)+suffix)
		take(t, s, op)
		state, _, err := s.Peek(t.Context(), &op)
		if got := len(state) / 2; err != nil || got != 1 || used(t, s, op) != 1 {
			t.Errorf("without the key%s: got %d members, %v, want the one since", suffix, got, err)
		}
	}
}

// Servers that are unavailable when a store is opened are not an error: calls return
// outages until the servers are there.
func TestServersAreNotThereYet(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) (url string, nodes []*redistest.Node){
		"server": func(t *testing.T) (string, []*redistest.Node) {
			n := redistest.Server(t)
			return at(n.Addr()), []*redistest.Node{n}
		},
		"sentinel": func(t *testing.T) (string, []*redistest.Node) {
			g := redistest.Sentinel(t)
			return fmt.Sprintf("redis+sentinel://%s/%s?timeout=%v", g.Addrs(), redistest.MasterName, patience), g.Sentinels
		},
		"cluster": func(t *testing.T) (string, []*redistest.Node) {
			c := redistest.Cluster(t, 3, 0)
			return clusterURL(c), c.Masters
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, nodes := start(t)
			for _, n := range nodes {
				n.Kill()
			}
			s := openURL(t, url)
			op := hourly(10, "rule", "k")
			outage(t, s, store.Take, op)
			for _, n := range nodes {
				n.Restart()
			}
			redistest.Eventually(t, "the store answers", func() bool {
				return store.Do(context.Background(), s, store.Take, []store.Op{op}) == nil
			})
		})
	}
}

// Calls above the bound of calls in flight wait for half of their time, and are then not sent. One namespace leaves
// one of the four free.
func TestInFlight(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s&in_flight=4")
	op := hourly(10, "rule", "k")
	take(t, s, op)
	n.Stop()
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			if err := store.Do(context.Background(), s, store.Take, []store.Op{op}); err != nil {
				t.Error(err)
			}
		})
	}
	redistest.Eventually(t, "three calls wait", func() bool { return s.Nodes()[0].InFlight == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := store.Do(ctx, s, store.Take, []store.Op{op}); !errors.Is(err, remote.ErrBusy) {
		t.Errorf("got error %v, want too many calls", err)
	}
	n.Continue()
	callers.Wait()
	if got := used(t, s, op); got != 4 {
		t.Errorf("used: got %d, want the 4 that were sent", got)
	}
}

// A deadline of the caller that is earlier than the time-out is not an outage.
func TestCallersDeadline(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	op := hourly(10, "rule", "k")
	take(t, s, op)
	n.Stop()
	defer n.Continue()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := store.Do(ctx, s, store.Take, []store.Op{op}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want the caller's deadline", err)
	}
}

// Calls end in several ways: answered, given up, cut off, cancelled. None stays in
// the number of calls in flight.
func TestNothingStaysInFlight(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, clusterURL(c)+"&in_flight=4")
	var ops []store.Op
	for _, key := range keysOn(c.Masters...) {
		ops = append(ops, hourly(quota, "rule", key))
	}
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			own := append([]store.Op(nil), ops[:1+i%3]...)
			for n := range 40 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Millisecond)
				_ = store.Do(ctx, s, store.Take, own)
				_, _, _ = s.Peek(ctx, &own[0])
				cancel()
			}
		})
	}
	c.Masters[0].Pause(200 * time.Millisecond)
	callers.Wait()
	redistest.Eventually(t, "no call waits", func() bool {
		for _, n := range s.Nodes() {
			if n.InFlight != 0 {
				return false
			}
		}
		return true
	})
}

// A call with more ops than a script can read is an error, and nothing is counted.
func TestTooManyOps(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=10s")
	ops := make([]store.Op, 1<<16)
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Hour)})
	for i := range ops {
		ops[i] = store.Op{Space: store.NewSpace("", "many", "many", 0), Limit: limit, Key: fmt.Append(nil, i), N: 1}
	}
	err := store.Do(t.Context(), s, store.Take, ops)
	if err == nil {
		t.Fatal("got no error")
	}
	wantIn(t, err.Error(), "65536 ops", "at most 65535")
	if state, _, err := s.Peek(t.Context(), &ops[0]); err != nil || len(state) > 0 {
		t.Errorf("got state %v, %v, want none", state, err)
	}
}
