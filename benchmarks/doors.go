package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// doorRules is the rules file of the service: one sliding rule per user.
const doorRules = `rules:
  - {name: posts, when: {action: post, user: "*"}, per: [user], limit: 1000000, window: 1h}
`

// connections is the number of connections that send requests to a service.
const connections = 32

// door is one way to a decision. It measures itself and returns calls per second, the
// decisions in each call, the 99th percentile of a call, and the processor time for a
// call of weir's process and of Redis.
type door struct {
	name, note string
	empty      bool // answers nothing; the calls over HTTP are compared with it
	fixed      bool // answers without a decision
	http       bool
	measure    func() (measure.Numbers, error)
}

// The columns of a door's numbers.
const (
	doorCalls = iota
	doorDecisions
	doorP99
	doorCPU
	doorRedis
)

// doors measures the processor time of decisions through each of weir's doors.
func doors(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Processor time of decisions, through each door",
		Text: fmt.Sprintf("Seconds of processor time for a million decisions of one rule, for %s users in turn: of the process in which weir runs, and of Redis. "+
			"The library runs in the measured program itself. The service is a process of its own, and the time of its clients is not included. "+
			"They have %d connections, on the same cores. The load is from %s.", report.Number(100_000), connections, loadFrom()),
		Head:  []string{"", "weir", "Redis", "both", "calls a second", "p99 of a call"},
		Notes: []string{},
	}
	all, stop, err := openDoors(s)
	defer stop()
	if err != nil {
		t.Text, t.Head = fmt.Sprintf("Not measured: %v.", err), nil
		return t, nil
	}
	var failed error
	var jobs []func() measure.Numbers
	for _, d := range all {
		jobs = append(jobs, func() measure.Numbers {
			n, err := d.measure()
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", d.name, err))
				return measure.Numbers{0, 1, 0, 0, 0}
			}
			return n
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	chart := report.Chart{Title: "Seconds of processor time for a million decisions", Unit: " s"}
	for i, d := range all {
		if d.empty || d.fixed {
			continue
		}
		n := numbers[i]
		weir, redis := 1e6*n[doorCPU]/n[doorDecisions], 1e6*n[doorRedis]/n[doorDecisions]
		both := weir
		if !math.IsNaN(redis) {
			both += redis
		}
		t.Row(d.name, report.Number(weir), report.Number(redis), report.Number(both), report.Number(n[doorCalls]), report.Time(n[doorP99]))
		chart.Bars = append(chart.Bars, report.Bar{Label: d.name, Value: both, Text: report.Number(both), Ours: true})
		s.found.keep("doors", d.name, []float64{both, n[doorCalls]}, "CPU", "calls")
		if d.note != "" {
			t.Notes = append(t.Notes, d.name+": "+d.note+".")
		}
	}
	t.More = append(t.More, service(s, all, numbers))
	t.Chart, err = s.draw("doors.svg", chart)
	return t, err
}

// service makes the table of the calls over HTTP beside a handler that does nothing.
func service(s settings, all []door, numbers []measure.Numbers) *report.Table {
	t := &report.Table{
		Title: "The service, beside a handler that does nothing",
		Text: fmt.Sprintf("The same measurement: calls over HTTP with %d open connections. The empty handler is the one of net/http: it reads the same requests and answers without a body. "+
			"The fixed answer is the least that a handler for decisions has to do over HTTP: it reads the body, and writes always the same decision. "+
			"Microseconds are processor time of the service for one call.", connections),
		Head: []string{"", "calls a second", "× empty", "µs a call", "µs over empty", "p99"},
	}
	var empty measure.Numbers
	for i, d := range all {
		if d.empty {
			empty = numbers[i]
		}
	}
	for i, d := range all {
		if !d.http {
			continue
		}
		n := numbers[i]
		over := 1e6 * (n[doorCPU] - empty[doorCPU])
		name := d.name
		if d.empty {
			name, over = report.Bold(name), measure.None()
		}
		t.Row(name, report.Number(n[doorCalls]), report.Ratio(n[doorCalls]/empty[doorCalls]), report.Number(1e6*n[doorCPU]), report.Number(over), report.Time(n[doorP99]))
		s.found.keep("service", d.name, []float64{n[doorCalls] / empty[doorCalls], over}, "rate", "over")
	}
	return t
}

// openDoors starts what the doors need. stop ends it, also after an error.
func openDoors(s settings) (all []door, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, p := range peer.Doors() {
		l, err := start(p, plenty())
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, l.Stop)
		all = append(all, s.inside(p.Name, l.Allow, 0))
	}
	service, err := s.tools.serve(doorRules)
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = service.Stop() }) // it was running
	all = append(all, s.outside(service, 0)...)
	for _, mode := range []string{"", "fixed"} {
		handler, err := s.handler(mode)
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, func() { _ = handler.Stop() })
		d := s.web("an empty handler", handler, take, takeLua, 1, false, 0)
		if d.empty = mode == ""; !d.empty {
			d.name, d.fixed = "a handler with a fixed answer", true
		}
		all = append(all, d)
	}

	server, err := measure.StartRedis()
	if err != nil {
		return all, stop, nil //nolint:nilerr // the rows with Redis are left out, as the page says elsewhere
	}
	stops = append(stops, server.Stop)
	for _, p := range peer.RedisDoors() {
		l, err := start(p, peer.Config{Quota: plenty().Quota, Window: plenty().Window, Redis: server.Addr})
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, l.Stop)
		all = append(all, s.inside(p.Name, l.Allow, server.PID()))
	}
	over, err := s.tools.serve(doorRules, "--store", "redis://"+server.Addr, "--store-timeout", "1s")
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = over.Stop() })
	return append(all, s.outside(over, server.PID())[0]), stop, nil
}

// handler starts the handler of net/http that decides nothing, in a mode of
// scripts/emptyhandler.
func (s settings) handler(mode string) (*measure.Service, error) {
	path, err := s.tools.build("scripts/emptyhandler")
	if err != nil {
		return nil, err
	}
	return measure.StartService(path, func(a, _, _ string) []string { return []string{a, mode} })
}

// inside returns a door of this process, with 64 callers over Redis and otherwise one.
func (s settings) inside(name string, allow func(string) bool, redis int) door {
	keys := measure.NewKeys(100_000)
	d := door{name: name}
	d.measure = func() (measure.Numbers, error) {
		begun := costs(os.Getpid(), redis)
		if redis > 0 {
			load := measure.Callers(allow, keys, 64, s.load)
			return begun.since(load, 1), nil
		}
		began := time.Now()
		calls := 0
		for time.Since(began) < s.load/2 {
			for range 1000 {
				allow(keys.At(uint32(calls % keys.Len())))
				calls++
			}
		}
		load := measure.Load{Calls: float64(calls), PerSecond: float64(calls) / time.Since(began).Seconds()}
		n := begun.since(load, 1)
		n[doorP99] = measure.None()
		return n, nil
	}
	return d
}

// outside returns the doors of a service. With Redis they are named for it.
func (s settings) outside(service *measure.Service, redis int) []door {
	suffix := ""
	if redis > 0 {
		suffix = ", over Redis"
	}
	koala := *service
	koala.Addr = service.Koala
	anew := s.web("koala, /rule/browse, a connection for each call"+suffix, &koala, browse(true), "", 1, true, redis)
	anew.http = false
	return []door{
		s.web("HTTP, POST /v1/take"+suffix, service, take, takeLua, 1, false, redis),
		s.web("HTTP, POST /v1/check"+suffix, service, check, checkLua, 1, false, redis),
		s.web("HTTP, POST /v1/batch of 100"+suffix, service, batch, "", 100, false, redis),
		s.web("koala, /rule/browse"+suffix, &koala, browse(false), browseLua, 1, false, redis),
		anew,
	}
}

// web returns a door over HTTP. The load is from wrk, if wrk is installed and there is a
// script for it.
func (s settings) web(name string, service *measure.Service, request measure.Request, script string, decisions float64, anew bool, redis int) door {
	return door{name: name, http: decisions == 1 && redis == 0, measure: func() (measure.Numbers, error) {
		if _, err := measure.HTTP(service.Addr, request, connections, anew, s.load/10); err != nil { // warm
			return nil, err
		}
		begun := costs(service.PID(), redis)
		var load measure.Load
		var err error
		if script != "" && measure.Wrk() {
			load, err = measure.WrkHTTP(service.Addr, script, connections, s.load)
		} else {
			load, err = measure.HTTP(service.Addr, request, connections, anew, s.load)
		}
		return begun.since(load, decisions), err
	}}
}

// loadFrom names the client.
func loadFrom() string {
	if measure.Wrk() {
		return "wrk; for batches, and for a connection for each call, from a client in Go"
	}
	return "a client in Go, because wrk is not installed"
}

// The requests in wrk's language.
const (
	takeLua   = postLua + "/v1/take" + bodyLua
	checkLua  = postLua + "/v1/check" + bodyLua
	browseLua = `request = function()
  return wrk.format("GET", "/rule/browse?action=post&user=" .. user(), {["Connection"] = "keep-alive"})
end
`
	postLua = `request = function()
  return wrk.format("POST", "`
	bodyLua = `", {["Content-Type"] = "application/json"},
    '{"attributes":{"action":"post","user":"' .. user() .. '"}}')
end
`
)

// cost is the processor time that two processes have used at some time.
type cost struct {
	pid, redis       int
	weirCPU, itsTime float64
}

func costs(pid, redis int) cost {
	c := cost{pid: pid, redis: redis, weirCPU: measure.CPU(pid), itsTime: measure.None()}
	if redis > 0 {
		c.itsTime = measure.CPU(redis)
	}
	return c
}

// since returns the numbers of a load since c was made.
func (c cost) since(load measure.Load, decisions float64) measure.Numbers {
	now := costs(c.pid, c.redis)
	return measure.Numbers{
		load.PerSecond, decisions, float64(load.P99),
		(now.weirCPU - c.weirCPU) / load.Calls, (now.itsTime - c.itsTime) / load.Calls,
	}
}

// take appends to b a request for one decision, for user i.
func take(b []byte, i int) []byte {
	return post(b, "/v1/take", func(b []byte) []byte { return attributes(b, i) })
}

// check appends to b a request for a check, which counts nothing.
func check(b []byte, i int) []byte {
	return post(b, "/v1/check", func(b []byte) []byte { return attributes(b, i) })
}

// batch appends to b a request for a hundred decisions.
func batch(b []byte, i int) []byte {
	return post(b, "/v1/batch", func(b []byte) []byte {
		b = append(b, `{"requests":[`...)
		for n := range 100 {
			if n > 0 {
				b = append(b, ',')
			}
			b = attributes(b, (i*100+n)%100_000)
		}
		return append(b, "]}"...)
	})
}

func attributes(b []byte, user int) []byte {
	b = append(b, `{"attributes":{"action":"post","user":"`...)
	return append(strconv.AppendInt(b, int64(user), 10), `"}}`...)
}

// post appends a request with a body.
func post(b []byte, path string, body func([]byte) []byte) []byte {
	b = append(append(append(b, "POST "...), path...), " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "...)
	at := len(b)
	b = append(b, "000000\r\n\r\n"...)
	from := len(b)
	b = body(b)
	n := len(b) - from
	for i := range 6 {
		b[at+5-i] = '0' + byte(n%10)
		n /= 10
	}
	return b
}

// browse returns a function that appends koala's request for one decision. With anew,
// the request asks the server to close the connection.
func browse(anew bool) measure.Request {
	end := " HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
	if anew {
		end = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	}
	return func(b []byte, i int) []byte {
		b = append(b, "GET /rule/browse?action=post&user="...)
		return append(strconv.AppendInt(b, int64(i), 10), end...)
	}
}
