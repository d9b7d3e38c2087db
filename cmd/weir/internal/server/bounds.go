package server

import (
	"log/slog"
	"net"

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

// bounds holds what listeners need to keep to the bounds of the configuration.
type bounds struct {
	cfg         config.Bounds
	connections int // of each listener but admin; 0 means no bound
	numbers     *metrics.Metrics
	loading     func() bool // the counters are being loaded; nil: never
}

func newBounds(cfg config.Config, numbers *metrics.Metrics, log *slog.Logger) *bounds {
	b := &bounds{cfg: cfg.Bounds, connections: cfg.Bounds.Connections, numbers: numbers}
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

// socket opens the address of a listener without HTTP.
func (b *bounds) socket(l config.Listener) (net.Listener, error) {
	socket, err := open(l)
	if err == nil && b.connections > 0 {
		socket = newConnLimiter(socket, b.connections, false, b.shedding(l.Name))
	}
	return socket, err
}

// shedding returns what counts the connections that a listener refuses or closes.
func (b *bounds) shedding(listener string) func() {
	return func() { b.numbers.Shed(listener, access.BoundConnections) }
}

// requests returns the bounds of the requests of a listener.
func (b *bounds) requests(listener string) *access.Bounds {
	return &access.Bounds{
		Requests: b.cfg.Requests,
		Memory:   int64(b.cfg.RequestMemory),
		Loading:  b.loading,
		Shed:     func(bound string) { b.numbers.Shed(listener, bound) },
	}
}
