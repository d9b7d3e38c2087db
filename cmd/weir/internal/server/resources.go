package server

import (
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// adminConnections returns the maximum number of connections of the admin address, of files that
// the process may open (0: not known). They are separate from those of the other listeners, so
// that probes get through.
func adminConnections(files int) int {
	const most, least = 256, 64
	if files == 0 {
		return most
	}
	return min(most, max(files/4, least))
}

// spareDescriptors are the files that the process needs in addition to the connections of
// its callers: rules, logs, the store's connections.
const spareDescriptors = 48

// resources has what listeners need to keep to the resource limits of the configuration.
type resources struct {
	cfg         config.ResourceLimits
	connections int // of each listener but admin; 0 means no limit
	numbers     *metrics.Metrics
	loading     func() bool // the counters are being loaded; nil: never
}

func newResources(cfg config.Config, numbers *metrics.Metrics, log *slog.Logger) *resources {
	r := &resources{cfg: cfg.Resources, connections: cfg.Resources.Connections, numbers: numbers}
	listeners := len(cfg.Listeners()) - 1
	if files := descriptors(); files > 0 && r.connections > 0 {
		if fit := max((files-spareDescriptors-adminConnections(files))/listeners, 8); fit < r.connections {
			log.Warn("fewer connections than --max-connections: the process may open too few files",
				"connections", fit, "max_connections", r.connections, "files", files)
			r.connections = fit
		}
	}
	return r
}

// socket opens the address of a listener without HTTP.
func (r *resources) socket(l config.Listener) (net.Listener, error) {
	socket, err := open(l)
	if err != nil {
		return nil, err
	}
	limiter := newConnLimiter(socket, r.connections, "", r.shedding(l.Name))
	if l.Name != "grpc" { // which counts the bytes of its connections itself
		limiter.incoming.most = r.incomplete()
	}
	return limiter, nil
}

// incomplete returns how many bytes clients of a listener may have sent that are not a request yet. At least a few of the
// largest heads fit.
func (r *resources) incomplete() int64 {
	if r.cfg.RequestMemory == 0 {
		return 0
	}
	return max(int64(r.cfg.RequestMemory)/byteMemory, 4*koalaapi.MaxHead)
}

// shedding returns what counts the connections that a listener refuses or closes.
func (r *resources) shedding(listener string) func() {
	return func() { r.numbers.Shed(listener, access.BoundConnections) }
}

// requests returns the resource limits of the requests of a listener.
func (r *resources) requests(listener string) *access.ResourceLimits {
	return &access.ResourceLimits{
		Requests: r.cfg.Requests,
		Memory:   int64(r.cfg.RequestMemory),
		Loading:  r.loading,
		Shed:     func(bound string) { r.numbers.Shed(listener, bound) },
	}
}

// tableBytes returns the memory limit of the counters, or 0 for none. It also
// makes the garbage collector keep to the memory that this process may use, unless
// GOMEMLIMIT is set.
func tableBytes(cfg config.Config, log *slog.Logger) int64 {
	available := availableMemory("/")
	if available > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(available / 10 * 9)
	}
	bound := int64(cfg.Resources.Memory)
	if cfg.Resources.Memory == config.AutoMemory {
		if bound = available / 2; bound == 0 {
			log.Warn("--memory is not set, and the memory of this machine is not known: counters in memory have no common bound")
		}
	}
	return bound
}

// availableMemory returns the memory that this process may use, as files below
// root say: that of its control group or of the machine, whichever is less; 0 if
// neither is known.
func availableMemory(root string) int64 {
	least := int64(0)
	for _, n := range []int64{
		number(root+"/sys/fs/cgroup/memory.max", ""),                   // version 2
		number(root+"/sys/fs/cgroup/memory/memory.limit_in_bytes", ""), // version 1
		number(root+"/proc/meminfo", "MemTotal:") << 10,
	} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// number returns the number after a word of a file, or at its start if word is empty. It
// returns 0 if there is none, as if a control group has the word max for no limit.
func number(path, word string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	at := slices.Index(fields, word) + 1
	if at >= len(fields) {
		return 0
	}
	n, err := strconv.ParseInt(fields[at], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
