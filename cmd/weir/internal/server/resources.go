package server

import (
	"log/slog"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// adminConnections is the most connections of the admin address. They are not
// those of the other listeners, so that probes always pass.
const adminConnections = 64

// spareDescriptors are the files that the process needs beside the connections of
// its callers: rules, logs, the store's connections.
const spareDescriptors = 48

// resources has what listeners need to keep to the resource limits of the configuration.
type resources struct {
	cfg         config.ResourceLimits
	connections int // of each listener but admin; 0 means no bound
	numbers     *metrics.Metrics
	loading     func() bool // the counters are being loaded; nil: never
}

func newResources(cfg config.Config, numbers *metrics.Metrics, log *slog.Logger) *resources {
	b := &resources{cfg: cfg.Resources, connections: cfg.Resources.Connections, numbers: numbers}
	listeners := len(cfg.Listeners()) - 1
	if files := descriptors(); files > 0 && b.connections > 0 {
		if fit := max((files-spareDescriptors-adminConnections)/listeners, 8); fit < b.connections {
			log.Warn("fewer connections than --max-connections: the process may open too few files",
				"connections", fit, "max_connections", b.connections, "files", files)
			b.connections = fit
		}
	}
	return b
}

// shedding returns what counts the connections that a listener refuses or closes.
func (b *resources) shedding(listener string) func() {
	return func() { b.numbers.Shed(listener, access.BoundConnections) }
}

// requests returns the resource limits of the requests of a listener.
func (b *resources) requests(listener string) *access.ResourceLimits {
	return &access.ResourceLimits{
		Requests: b.cfg.Requests,
		Memory:   int64(b.cfg.RequestMemory),
		Loading:  b.loading,
		Shed:     func(bound string) { b.numbers.Shed(listener, bound) },
	}
}
