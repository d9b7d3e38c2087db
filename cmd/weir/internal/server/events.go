package server

import (
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
)

// openEvents returns what delivers events, or nil if cfg turns events off. Events are kept where the counters
// are: in the shared store, or in the data directory.
func openEvents(cfg config.Config, backends *backends, keeps *keeper, keys top.KeyText, numbers *metrics.Metrics, log *slog.Logger) (*events.Hub, error) {
	c := events.Config{Keep: cfg.Events, Near: cfg.NearLimit, Text: keys, Instance: instanceName(), Agent: "weir/" + Version(), Log: log}
	if cfg.Webhooks != "" {
		var err error
		if c.Webhooks, err = events.Webhooks(cfg.Webhooks); err != nil {
			return nil, err
		}
	}
	c.Secret = backends.secret
	if cfg.LogKeysSecret != "" {
		c.Secret = func() []byte { return []byte(cfg.LogKeysSecret) } // all instances have it, also without a store
	}
	switch {
	case backends.shared != nil:
		c.Kept, c.Shared = backends.shared, true
	case backends.local.Kept != nil:
		c.Kept = keeps.local
	}
	hub := events.New(c)
	backends.report(hub)
	numbers.WatchEvents(hub.Dropped)
	if len(c.Webhooks) > 0 {
		numbers.WatchWebhooks(func() (all []metrics.WebhookStats) {
			for _, w := range hub.Stats() {
				all = append(all, metrics.WebhookStats(w))
			}
			return all
		})
	}
	return hub, nil
}

// report makes hub get the changes and the ends of overrides in the namespaces of set from now on.
func (k *keeper) report(hub *events.Hub, set *namespace.Set) {
	eventOf := func(name, by string, o *overrides.Override) events.Override {
		var rules *rule.Set
		if n, err := set.Choose(nil, nil, name); err == nil {
			rules = n.Engine().Rules()
		}
		return events.Override{
			Namespace: name, Rule: o.Rule, Key: o.Key(rules), Limit: o.Limit, Until: o.Until, Note: o.Note, By: by,
			Version: o.Set.UTC().Format(time.RFC3339Nano),
		}
	}
	k.ended = func(name string, o *overrides.Override) { hub.OverrideEnded(eventOf(name, o.By, o)) }
	k.Told = func(c namespace.OverrideChange) {
		if c.After != nil {
			hub.OverrideSet(eventOf(c.Namespace, c.By.Token, c.After))
		} else {
			hub.OverrideEnded(eventOf(c.Namespace, c.By.Token, c.Before))
		}
	}
}

// instanceName returns the name of this process in events. No other process has it.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "weir"
	}
	return host + "-" + rand.Text()[:6]
}
