package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/doctor"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// examination fills facts with what one node answers.
type examination struct {
	facts   *doctor.Facts
	client  rueidis.Client
	slot    int
	cluster bool
}

// run asks the node. Errors of the server are facts; the error is that of a node
// without an answer.
func (e *examination) run(ctx context.Context) error {
	for _, ask := range []func(context.Context) error{e.ask, e.programs, e.race, e.time} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	return nil
}

// do sends commands together and calls each for their replies. An error of the
// server is passed to each as text.
func (e *examination) do(ctx context.Context, commands [][]string, each func(i int, m rueidis.RedisMessage, problem string)) error {
	built := make([]rueidis.Completed, len(commands))
	for i, c := range commands {
		built[i] = e.client.B().Arbitrary(c...).Build()
	}
	for i, r := range e.client.DoMulti(ctx, built...) {
		m, err := r.ToMessage()
		var said *rueidis.RedisError
		switch {
		case err == nil || rueidis.IsRedisNil(err):
			each(i, m, "")
		case errors.As(err, &said):
			each(i, m, said.Error())
		default:
			return err
		}
	}
	return nil
}

// keysSeen is how many keys the look for foreign keys goes over.
const keysSeen = 1000

// ask asks what the node is, how it is set up, and which keys it has.
func (e *examination) ask(ctx context.Context) error {
	f := e.facts
	commands := [][]string{
		{"INFO"}, {"HELLO"}, {"ACL", "WHOAMI"},
		{"SCAN", "0", "MATCH", globbed(f.Use.Prefix) + ":*", "COUNT", strconv.Itoa(keysSeen)},
	}
	for _, name := range doctor.Settings {
		commands = append(commands, []string{"CONFIG", "GET", name})
	}
	var config strings.Builder
	err := e.do(ctx, commands, func(i int, m rueidis.RedisMessage, problem string) {
		if problem != "" {
			return // the text stays empty
		}
		switch i {
		case 0:
			f.Info, _ = m.ToString()
		case 1:
			f.Hello = lines(m, ":")
		case 2:
			f.User, _ = m.ToString()
		case 3:
			if page, err := m.AsScanEntry(); err == nil {
				f.Keys, f.KeysSeen = page.Elements, true
			}
		default:
			config.WriteString(lines(m, " "))
		}
	})
	f.Config = config.String()
	return err
}

// lines returns the texts and numbers of a map, a line each, by name.
func lines(m rueidis.RedisMessage, separator string) string {
	fields, err := m.AsMap()
	if err != nil {
		return ""
	}
	var all []string
	for name, value := range fields {
		text, err := value.ToString()
		if n, err2 := value.AsInt64(); err != nil && err2 == nil {
			text, err = strconv.FormatInt(n, 10), nil
		}
		if err == nil {
			all = append(all, name+separator+text+"\n")
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// globbed returns text as a pattern that matches only text.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// programs runs the commands that the store's programs need.
func (e *examination) programs(ctx context.Context) error {
	f := e.facts
	key := e.scratch()
	commands := [][]string{
		{"EVAL", doctor.Probe, "3", key, key + ":z", key + ":u"},
		{"EVALSHA", strings.Repeat("0", 40), "1", key},
		{"PING"},
	}
	if e.cluster {
		commands = append(commands, []string{"CLUSTER", "SLOTS"}, []string{"ASKING"})
	}
	if f.Use.WaitReplicas > 0 {
		commands = append(commands, []string{"WAIT", "0", "1"})
	}
	return e.do(ctx, commands, func(i int, m rueidis.RedisMessage, problem string) {
		name := commands[i][0]
		if name == "CLUSTER" {
			name = "CLUSTER SLOTS"
		}
		f.Ran[name] = problem
		if i > 0 || problem != "" {
			return
		}
		ran, err := m.AsStrSlice()
		if err != nil || len(ran)%2 != 0 {
			f.Ran[name] = "an answer that is no list of texts"
			return
		}
		for pair := range slices.Chunk(ran, 2) {
			f.Ran[pair[0]] = pair[1]
		}
	})
}

// scratch returns a new name of a key in the node's slot, with the form of the
// store's own.
func (e *examination) scratch() string {
	random := fmt.Sprintf("%016x", rand.Uint64())
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s:{doctor-%d}:doctor:%s", e.facts.Use.Prefix, i, random)
		if !e.cluster || wire.SlotOf([]byte(key)) == e.slot {
			return key
		}
	}
}

// race runs a program that counts over two connections at the same time, and
// reads what was counted.
func (e *examination) race(ctx context.Context) error {
	const each = 10
	if e.facts.Ran["EVAL"] != "" || e.facts.Ran["GET"] != "" || e.facts.Ran["SET"] != "" {
		return nil
	}
	key := e.scratch()
	var errs [2]error
	var refused [2]bool
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() {
			errs[i] = e.client.Dedicated(func(c rueidis.DedicatedClient) error {
				// A connection that is kept for others ends subscriptions first, which needs rights.
				defer c.Close()
				for range each {
					err := c.Do(ctx, c.B().Arbitrary("EVAL", doctor.Race, "1", key).Build()).Error()
					var said *rueidis.RedisError
					if errors.As(err, &said) {
						refused[i] = true
						return nil
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	both.Wait()
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return err
	}
	return e.do(ctx, [][]string{{"GET", key}, {"DEL", key}}, func(i int, m rueidis.RedisMessage, problem string) {
		if i == 0 && problem == "" && !refused[0] && !refused[1] {
			n, _ := m.AsInt64()
			e.facts.Raced, e.facts.Counted = 2*each, int(n)
		}
	})
}

// time measures the round trip, and how far the clocks are apart.
func (e *examination) time(ctx context.Context) error {
	var trips []time.Duration
	for range 9 {
		before := time.Now()
		parts, err := e.client.Do(ctx, e.client.B().Time().Build()).AsStrSlice()
		trip := time.Since(before)
		var said *rueidis.RedisError
		switch {
		case errors.As(err, &said):
			return nil
		case err != nil:
			return err
		case len(parts) != 2:
			return nil
		}
		seconds, _ := strconv.ParseInt(parts[0], 10, 64)
		micros, _ := strconv.ParseInt(parts[1], 10, 64)
		if len(trips) == 0 || trip < slices.Min(trips) {
			e.facts.Ahead = time.Unix(seconds, micros*1000).Sub(before.Add(trip / 2))
		}
		trips = append(trips, trip)
	}
	slices.Sort(trips)
	e.facts.RoundTrip = trips[len(trips)/2]
	return nil
}
