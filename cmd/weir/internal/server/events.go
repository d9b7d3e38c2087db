package server

import (
	"crypto/rand"
	"log/slog"
	"os"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/top"
)

// openEvents returns what delivers events, or nil if cfg turns events off. Events are kept where the counters
// are: in the shared store, or in the data directory.
func openEvents(cfg config.Config, backends *backends, keys top.KeyText, numbers *metrics.Metrics, log *slog.Logger) (*events.Hub, error) {
	c := events.Config{Keep: cfg.Events, Near: cfg.NearLimit, Text: keys, Instance: instanceName(), Agent: "weir/" + Version(), Log: log}
	if cfg.Webhooks != "" {
		var err error
		if c.Webhooks, err = events.Webhooks(cfg.Webhooks); err != nil {
			return nil, err
		}
	}
	switch {
	case backends.shared != nil:
		c.Kept, c.Shared = backends.shared.Kept, true
	case backends.kept != nil:
		c.Kept = backends.kept
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

// instanceName returns the name of this process in events. No other process has it.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "weir"
	}
	return host + "-" + rand.Text()[:6]
}
