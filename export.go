package weir

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Export lists the keys that the rule called name has counted, with the numbers of each at
// one instant. Keys that are counted all the time are listed; a Redis server that moves keys meanwhile can
// list some twice. The memory is bounded. An error is about the rule, or an outage of the
// store. It is for weir's service, which reads the holds of one key by it, too: programs have no name for its options.
//
// Export uses the store at most half of the time, so that decisions do not wait.
func (e *Engine) Export(ctx context.Context, name string, o export.Options) (export.Result, error) {
	if o.Of != nil {
		return export.Result{}, e.holdsOf(ctx, name, &o)
	}
	rules, err := e.ready()
	if err != nil {
		return export.Result{}, err
	}
	i, ok := rules.Find(name)
	if !ok || rules.Rule(i).Kind() == rule.KindVerdict {
		return export.Result{}, unknownRule(rules, name)
	}
	x := exporter{rules: rules, i: i, rule: rules.Rule(i), options: o, shared: e.shared}
	x.op = store.Op{Space: rules.Prepared(i).Space, Limit: rules.AnyLimit(i)}
	_, _, closes := x.op.Limit.Exported(nil, 0, true)
	switch {
	case e.lister == nil:
		return export.Result{}, export.ErrNoList
	case !e.shared && !x.rule.Export:
		return export.Result{}, export.ErrNotKept
	case o.Closed && !closes:
		return export.Result{}, export.ErrNoPeriod
	case x.op.Limit.Window.Kind == window.KindBucket && !rules.QuotaInKey(i):
		return export.Result{}, export.ErrNoLevel
	}
	for x.result.Next = o.After; ; {
		began := time.Now()
		x.result.Next, err = e.lister.Keys(ctx, &x.op, x.result.Next, x.found)
		used := time.Since(began)
		if err != nil {
			return x.result, fmt.Errorf("weir: export: %w", err)
		}
		if err := x.write(); err != nil {
			return x.result, err
		}
		if x.result.Next == nil || o.Most > 0 && x.result.Keys >= o.Most {
			return x.result, nil
		}
		if err := x.pace.Rest(ctx, used); err != nil {
			return x.result, err
		}
	}
}

// holdsOf calls o.Holds with what a key holds.
func (e *Engine) holdsOf(ctx context.Context, name string, o *export.Options) error {
	var attributes []Attribute
	for name, value := range o.Of {
		attributes = append(attributes, Attribute{name, value})
	}
	k, err := e.locate(name, attributes)
	if err != nil {
		return err
	}
	reading, _, err := e.driver.Read(ctx, &k.op, k.rule.OnOutage)
	if err != nil {
		return fmt.Errorf("weir: export: %w", err)
	}
	o.Holds(reading.Holds)
	return nil
}

// exporter is one export.
type exporter struct {
	rules   *plan.Rules
	i       int
	rule    *rule.Rule
	op      store.Op
	options export.Options
	shared  bool // so that keys can be found twice

	begun  bool
	page   []export.Key
	result export.Result
	pace   export.Pace

	recent *export.Recent
	hash   maphash.Hash
}

// found adds a key to the page.
func (x *exporter) found(key []byte, state window.State, now window.Instant) {
	if x.op.Limit.Expires(state) <= now {
		return
	}
	k, limit, ok := x.key(key)
	if !ok {
		x.result.Unknown++
		return
	}
	cell, held, _ := limit.Exported(state, now, x.options.Closed)
	k.At, k.Used, k.Held, k.Start, k.Length = now, cell.Hits, held, cell.Start, cell.Length
	if !x.options.Closed {
		r := limit.Read(state, now)
		switch kind := limit.Window.Kind; {
		case kind == window.KindCalendar || kind == window.KindAligned:
			start, end := limit.Window.PeriodBounds(r.At)
			k.Start, k.Length = start, end.Sub(start)
		case kind == window.KindFixed && len(r.History) > 0:
			k.Start, k.Length = r.History[0].Start, r.History[0].Length
		case kind == window.KindCells:
			k.History = r.History
		}
	}
	if k.Used == 0 && k.Held == 0 {
		return
	}
	x.page = append(x.page, k)
}

// key returns the attributes of a key and its limit. It reports false if the key is not known.
func (x *exporter) key(key []byte) (k export.Key, limit *window.Compiled, ok bool) {
	if key == nil && len(x.rule.Per) > 0 {
		return k, nil, false
	}
	if k.Values, limit, k.QuotaKnown, ok = x.rules.OfKey(x.i, key); !ok {
		return k, nil, false
	}
	k.Quota = limit.Capacity()
	return k, limit, true
}

// write hands the page over.
func (x *exporter) write() error {
	if !x.begun {
		x.begun = true
		if err := x.options.Begin(x.rule.Per); err != nil {
			return err
		}
	}
	for n := range x.page {
		k := &x.page[n]
		if x.shared && x.again(k.Values) {
			continue
		}
		x.result.Keys++
		if err := x.options.Each(k); err != nil {
			return err
		}
	}
	clear(x.page)
	x.page = x.page[:0]
	return nil
}

// again reports whether a key was exported not long ago.
func (x *exporter) again(values []string) bool {
	if x.recent == nil {
		x.recent = new(export.Recent)
	}
	x.hash.Reset()
	for _, v := range values {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(v)))
		_, _ = x.hash.Write(size[:])
		_, _ = x.hash.WriteString(v)
	}
	return x.recent.Again(x.hash.Sum64())
}
