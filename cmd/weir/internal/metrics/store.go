package metrics

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store/remote"
)

// StoreStats is the state of a store in memory.
type StoreStats struct {
	// Rules has the numbers of each rule.
	Rules []RuleStats

	// Full is the number of new keys that were refused since the start because of a full
	// table.
	Full int64

	// Bytes is the memory of all keys, and MaxBytes its limit, or 0.
	Bytes, MaxBytes int64
}

// RuleStats has the numbers of one rule in memory.
type RuleStats struct {
	Namespace, Rule string

	// Keys is the number of keys. Holds is the number of holds that are alive, and
	// Banned the number of banned keys; each is negative if the rule cannot have
	// any, or if it does not count in memory.
	Keys, Holds, Banned int64
}

// Watch exports what stats returns, each time the metrics are read.
func (m *Metrics) Watch(stats func() StoreStats) {
	byRule := func(name, help string, number func(*RuleStats) int64) row[StoreStats] {
		return row[StoreStats]{name, help, []string{"namespace", "rule"}, func(s StoreStats, send send) {
			sums := map[ofRule]int64{}
			for i := range s.Rules {
				r := &s.Rules[i]
				if n := number(r); n >= 0 {
					sums[m.label(r.Namespace, r.Rule)] += n
				}
			}
			for of, n := range sums {
				send(float64(n), of.namespace, of.rule)
			}
		}}
	}
	watch(m, stats,
		byRule("weir_store_keys", "Keys in memory, by rule.", func(r *RuleStats) int64 { return r.Keys }),
		byRule("weir_store_holds", "Holds that are alive in memory, by rule.", func(r *RuleStats) int64 { return r.Holds }),
		byRule("weir_store_banned_keys", "Keys in memory that are banned, by rule.", func(r *RuleStats) int64 { return r.Banned }),
		number("weir_store_full_total", "Calls for new keys that were refused because their rule had max_keys keys, or because all counters had reached the memory limit.",
			func(s StoreStats) float64 { return float64(s.Full) }),
		number("weir_store_memory_bytes", "Memory of all counters in memory.", func(s StoreStats) float64 { return float64(s.Bytes) }),
		number("weir_store_memory_limit_bytes", "Limit of the memory of all counters; 0 without a limit.", func(s StoreStats) float64 { return float64(s.MaxBytes) }),
	)
}

// WatchDenials exports the number of denials that are in no journal.
func (m *Metrics) WatchDenials(dropped func() int64) {
	watch(m, dropped, number("weir_denials_dropped_total",
		"Denials that are not in the journal of weir denials: too many of one key in a minute, or too many at a time.",
		func(n int64) float64 { return float64(n) }))
}

// WatchEvents exports the number of events that were dropped.
func (m *Metrics) WatchEvents(dropped func() int64) {
	watch(m, dropped, number("weir_events_dropped_total",
		"Events that were dropped because there were too many, or because a webhook did not accept them for a day.",
		func(n int64) float64 { return float64(n) }))
}

// WebhookStats are the numbers of a webhook.
type WebhookStats struct {
	Name              string
	Delivered, Failed int64 // calls
	Waiting           int   // events
}

// WatchWebhooks exports the numbers of webhooks.
func (m *Metrics) WatchWebhooks(read func() []WebhookStats) {
	watch(m, read, row[[]WebhookStats]{
		"weir_webhook_calls_total", "Calls of webhooks by this instance.", []string{"webhook", "result"},
		func(all []WebhookStats, send send) {
			for _, w := range all {
				send(float64(w.Delivered), w.Name, "success")
				send(float64(w.Failed), w.Name, "failure")
			}
		},
	}, row[[]WebhookStats]{
		"weir_webhook_waiting", "Events that wait for a webhook, of all instances on the store.", []string{"webhook"},
		func(all []WebhookStats, send send) {
			for _, w := range all {
				send(float64(w.Waiting), w.Name)
			}
		},
	})
}

// ofRule has the labels of a rule.
type ofRule struct{ namespace, rule string }

// label returns the labels of a rule.
func (m *Metrics) label(namespace, rule string) ofRule {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.served[namespace]; n != nil && n.label == rest {
		return ofRule{rest, rest}
	}
	return ofRule{namespace, rule}
}

// WatchReports exports what reports returns, each time the metrics are read.
func (m *Metrics) WatchReports(reports func() weir.Reports) {
	watch(m, reports,
		number("weir_store_report_pending", "Keys with hits or ends of holds of an outage that the store does not have yet.",
			func(r weir.Reports) float64 { return float64(r.Pending) }),
		row[weir.Reports]{"weir_store_report_hits_total", "Hits that were counted in an outage, by the result of their report to the store.", []string{"result"},
			func(r weir.Reports, send send) {
				send(float64(r.Recorded), "recorded")
				send(float64(r.Lost), "lost")
				send(float64(r.Dropped), "dropped")
			}},
	)
}

// WatchNodes exports what nodes returns, each time the metrics are read.
func (m *Metrics) WatchNodes(nodes func() []remote.Node) {
	byNode := func(name, help string, number func(*remote.Node) float64) row[[]remote.Node] {
		return row[[]remote.Node]{name, help, []string{"node"}, func(nodes []remote.Node, send send) {
			for i := range nodes {
				send(number(&nodes[i]), nodes[i].Addr)
			}
		}}
	}
	watch(m, nodes,
		row[[]remote.Node]{"weir_store_outages_total", "Calls that a node of the store did not answer, or that were not sent to it, by reason.", []string{"node", "reason"},
			func(nodes []remote.Node, send send) {
				for _, n := range nodes {
					for reason, count := range n.Outages {
						send(float64(count), n.Addr, string(reason))
					}
				}
			}},
		byNode("weir_store_circuit_open", "Whether the circuit breaker of a node of the store is open: the node gets no calls, because it did not answer.", func(n *remote.Node) float64 { return one(n.Unavailable) }),
		byNode("weir_store_circuit_opens_total", "How often the circuit breaker of a node of the store opened.", func(n *remote.Node) float64 { return float64(n.Interruptions) }),
		byNode("weir_store_in_flight", "Calls that wait for an answer of a node of the store.", func(n *remote.Node) float64 { return float64(n.InFlight) }),
	)
}

// WatchLeases exports what leases returns, each time the metrics are read.
func (m *Metrics) WatchLeases(leases func() hook.Leases) {
	type L = hook.Leases
	watch(m, leases,
		number("weir_lease_keys", "Keys of which this instance leases a part of the quota, or asks for one.", func(l L) float64 { return float64(l.Keys) }),
		row[L]{"weir_lease_calls_total", "Calls of the store under rules with lease: for a lease, to settle one, and those that the store decided.", []string{"call"}, func(l L, send send) {
			send(float64(l.Asked), "lease")
			send(float64(l.Settled), "settle")
			send(float64(l.Direct), "decided")
		}},
		row[L]{"weir_lease_failed_total", "Leases that were refused, whose answer was lost, and that the store had lost.", []string{"reason"}, func(l L, send send) {
			send(float64(l.Refused), "refused")
			send(float64(l.Lost), "lost")
			send(float64(l.Dropped), "dropped")
		}},
		row[L]{"weir_lease_hits_total", "Hits of leases that are over: spent, and not spent.", []string{"result"}, func(l L, send send) {
			send(float64(l.Spent), "spent")
			send(float64(l.Returned), "returned")
		}},
	)
}

// WatchData exports what stats returns of a data directory, each time the metrics are read.
func (m *Metrics) WatchData(stats func() datadir.Stats) {
	type S = datadir.Stats
	seconds := func(name, help string, of func(S) time.Duration) row[S] {
		return number(name, help, func(s S) float64 { return of(s).Seconds() })
	}
	count := func(name, help string, of func(S) int64) row[S] {
		return number(name, help, func(s S) float64 { return float64(of(s)) })
	}
	watch(m, stats,
		number("weir_data_loading", "Whether counters are still being loaded from the data directory.", func(s S) float64 { return one(s.Loading) }),
		count("weir_data_loaded_keys", "Keys that were loaded at the start.", func(s S) int64 { return s.Loaded }),
		seconds("weir_data_load_seconds", "How long loading took, or has taken.", func(s S) time.Duration { return s.LoadTime }),
		seconds("weir_data_lag_seconds", "Time since the start of the last successful flush; a kill loses what was counted since.", func(s S) time.Duration { return s.Lag }),
		count("weir_data_bytes", "Size of the files in the data directory.", func(s S) int64 { return s.Bytes }),
		count("weir_data_live_bytes", "About how many bytes of the files the current keys need; 0 until that is known.", func(s S) int64 { return s.Live }),
		row[S]{"weir_data_flushes_total", "Flushes to the data directory, by result.", []string{"result"}, func(s S, send send) {
			send(float64(s.Flushes), "ok")
			send(float64(s.Failures), "failed")
		}},
		seconds("weir_data_flush_seconds_total", "Time that flushes took.", func(s S) time.Duration { return s.FlushTime }),
		number("weir_data_failing", "Whether the last flush failed, or hangs. Counting goes on in memory.", func(s S) float64 { return one(s.Failing) }),
		count("weir_data_written_bytes_total", "Bytes that were written to the data directory.", func(s S) int64 { return s.WrittenBytes }),
		count("weir_data_written_keys_total", "Keys that were written to the data directory.", func(s S) int64 { return s.WrittenKeys }),
		count("weir_data_compactions_total", "Compactions, each of which wrote all keys to a new file.", func(s S) int64 { return s.Compactions }),
		count("weir_data_damaged", "Batches and parts of files that could not be read at the start.", func(s S) int64 { return s.Damaged }),
	)
}
