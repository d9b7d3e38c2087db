// Package config defines the configuration of the service: its defaults, and
// the checks that find every fault at once. It does not read flags or files;
// the caller sets the fields.
package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/headers"
)

// Config is the configuration of the service. Start from [Default]; the zero
// value is not valid.
type Config struct {
	// Rules is the path of the rules file, or of a directory with a rules file
	// NAME.yaml for each namespace, or - for the text in Stdin. Empty: the demo rule is
	// served.
	Rules string

	// Stdin is the text of a rules file from the standard input.
	Stdin []byte

	// Koala is the path of a koala rule file, which replaces Rules.
	Koala string

	// KoalaListen is the address that serves koala's calls; see
	// [Config.KoalaAddr].
	KoalaListen string

	// KoalaTimeout is the maximum duration of a decision for koala's calls. 0
	// means StoreTimeout, or 500 ms if that is 0, too.
	KoalaTimeout time.Duration

	// Listen is the address of the API; see [ParseAddress]. Port 0 picks a free
	// one.
	Listen string

	// GRPCListen is the address of gRPC calls. Empty: none are served.
	GRPCListen string

	// GRPCAge is how long a connection of gRPC calls stays open before the client is asked to
	// open another one, and GRPCAgeGrace how much longer its calls may take. 0 sets no limit.
	GRPCAge, GRPCAgeGrace time.Duration

	// Envoy is about Envoy's rate limit protocol.
	Envoy Envoy

	// RESPListen is the address of calls in the protocol of Redis; see
	// [ParseRESPAddress]. Empty: none are served.
	RESPListen string

	// Admin is the address of health, metrics, reload and profiles.
	Admin string

	// Page is "on" or "off": whether Admin serves the page. PageWrite lets callers with scope admin
	// save rules there.
	Page      string
	PageWrite bool

	// Record is the memory, in bytes, for requests of the last hour, on which changed rules can be tried. 0: none are
	// kept.
	Record Bytes

	// MetricsListen is an address of metrics and health alone, and MetricsPath where the
	// metrics are there. Empty: only Admin has them, and /metrics.
	MetricsListen, MetricsPath string

	// Access is about authentication.
	Access Access

	// Headers is the dialect in which /v1/gate states the limits of a decision; see
	// [headers.Dialects]. HeadersJitter is the part, from 0 to 1, by which waits in
	// headers become longer at random.
	Headers       string
	HeadersJitter float64

	// Resources limits the concurrent work of the service.
	Resources ResourceLimits

	// Watch reloads the rules when the file, or a list it reads, changes.
	Watch bool

	// WatchEvery is the interval at which Watch checks the files even without a
	// notification from the system, for files that another machine changes. 0:
	// never.
	WatchEvery time.Duration

	// Store is the URL of the store that all instances share. Empty: each counts
	// in its own memory. StoreTimeout is the maximum time that a decision waits
	// for the store; 0 means the value in the URL, or the store's default.
	Store        string
	StoreTimeout time.Duration

	// Data is the directory that the counters in memory are written to, and loaded
	// from at the start. Empty: they end with the process. Sync is "always",
	// "interval" or "os", and SyncInterval how often what changed is written; empty
	// and 0 mean the defaults of package durable.
	Data         string
	Sync         string
	SyncInterval time.Duration

	// ServeWhileLoading makes rules follow their on_outage while the counters are
	// loaded from Data. Without it requests are refused until then.
	ServeWhileLoading bool

	// Nodes is the number of instances that share the store, or AutoNodes to
	// count them. While the store is unavailable, each instance admits its
	// share of a quota: a Nodes-th of it. 0 means that the number is not set:
	// each admits the whole quota.
	Nodes int

	// ReadyNeedsStore makes /readyz fail while the store is unavailable.
	// Without it the service stays ready, and rules follow their on_outage.
	ReadyNeedsStore bool

	// TopKeys is the number of keys that are kept for each rule: of those that use it most,
	// and of those that it denies most. 0 keeps none, and no recent denials.
	TopKeys int

	// Events is the number of recent events that are kept for streams; 0 keeps none. Webhooks is the path of
	// a file with webhooks. Empty: there are none.
	Events   int
	Webhooks string

	// NearLimit is the share of a quota, above 0 and below 1, from which on metrics
	// count a key as near its limit.
	NearLimit float64

	// MetricNamespaces is the maximum number of namespaces with their own label in metrics,
	// at least 1. Others are counted together.
	MetricNamespaces int

	// DrainDelay is how long the service accepts connections after it was told
	// to stop. Meanwhile /readyz fails, so that load balancers notice.
	DrainDelay time.Duration

	// DrainTimeout is how long requests in flight may take to finish after
	// that.
	DrainTimeout time.Duration

	// LogFormat is "text" or "json". LogLevel is "debug", "info", "warn" or
	// "error".
	LogFormat string
	LogLevel  string

	// LogKeys states how keys are shown in top keys, denials, logs and traces: "plain",
	// "hashed" or "none". Empty: plain in top keys and denials, none elsewhere.
	// LogKeysSecret is the secret of hashes. Empty: a random one.
	LogKeys       string
	LogKeysSecret string

	// OTLPEndpoint is the URL of a collector of OpenTelemetry. Empty: the standard
	// variables of the environment name it, or nothing is sent.
	OTLPEndpoint string

	// Warnings are logged at the start. They concern the source of the values.
	Warnings []string
}

// AutoNodes is the value of [Config.Nodes] to count the instances.
const AutoNodes = -1

// Default returns the configuration of a service on the loopback interface that
// watches its rules.
func Default() Config {
	return Config{
		Listen:    "127.0.0.1:8080",
		Admin:     "127.0.0.1:8081",
		Page:      PageOn,
		Headers:   string(headers.Draft),
		Watch:     true,
		TopKeys:   top.DefaultKeys,
		Events:    events.DefaultKeep,
		NearLimit: 0.8,
		Resources: defaultResources(),
		Envoy:     defaultEnvoy(),

		MetricNamespaces: 100,

		DrainTimeout: 10 * time.Second,
		LogFormat:    "text",
		LogLevel:     "info",
	}
}

// KoalaAddr returns the address that serves koala's calls: KoalaListen or, if
// that is empty and Koala is set, koala's own port on the loopback interface.
// It returns an empty string when no address serves them.
func (c *Config) KoalaAddr() string {
	if c.KoalaListen == "" && c.Koala != "" {
		return "127.0.0.1:9981"
	}
	return c.KoalaListen
}

// KoalaWait returns the maximum time that a decision for koala's calls waits for
// the store. The default is koala's own, 500 ms, because koala's clients expect to wait that long,
// and koala lets requests pass that it cannot count.
func (c *Config) KoalaWait() time.Duration {
	return cmp.Or(c.KoalaTimeout, c.StoreTimeout, 500*time.Millisecond)
}

// LogFormats returns the valid values of LogFormat.
func LogFormats() []string { return []string{"text", "json"} }

// LogLevels returns the valid values of LogLevel, the most verbose first.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Validate returns every fault of c as a [fault.List]. Paths are the names of
// the fields as flags have them. Validate opens no file and no port.
func (c *Config) Validate() error {
	f := faults{}
	f.listeners(c)
	f.envoy(c)
	f.koala(c)
	f.access(c)
	f.page(c)
	f.headers(c)
	f.resources(c)
	f.store(c)
	f.data(c)
	f.notNegative("koala-timeout", c.KoalaTimeout)
	f.notNegative("watch-every", c.WatchEvery)
	f.topKeys(c.TopKeys)
	if c.Events < 0 || c.Events > events.MaxKeep {
		f.Addf("events", "%d: out of range 0 to %d", c.Events, events.MaxKeep)
	}
	f.metrics(c)
	f.notNegative("drain-delay", c.DrainDelay)
	f.notNegative("drain-timeout", c.DrainTimeout)
	f.notNegative("grpc-max-connection-age", c.GRPCAge)
	f.notNegative("grpc-max-connection-age-grace", c.GRPCAgeGrace)
	f.oneOf("log-format", c.LogFormat, LogFormats())
	f.oneOf("log-level", c.LogLevel, LogLevels())
	f.telemetry(c)
	return f.Err()
}

// minRecord is the minimum of [Config.Record]; see record.MinBytes.
const minRecord Bytes = 8 << 20

// Values of [Config.Page].
const (
	PageOn  = "on"
	PageOff = "off"
)

// Pages returns the valid values of Page.
func Pages() []string { return []string{PageOn, PageOff} }

// page checks the fields about the page.
func (f *faults) page(c *Config) {
	f.oneOf("page", c.Page, Pages())
	switch {
	case c.Record == 0:
	case c.Page == PageOff:
		f.Addf("record", "not with page off, which alone uses what is recorded")
	case c.Record < minRecord:
		f.Addf("record", "%v: want at least %v, such as 64MiB", c.Record, minRecord)
	}
	switch {
	case !c.PageWrite:
	case c.Page == PageOff:
		f.Addf("page-write", "not with page off")
	case !c.Access.NeedsToken() || c.Access.Open("admin"):
		f.Addf("page-write", "needs tokens, because callers must show who they are: --tokens FILE or WEIR_TOKEN")
	case c.Rules == "" || c.Rules == "-":
		f.Addf("page-write", "only with rules, a file or a directory that can be written")
	}
}

// faults collects the faults of a Config.
type faults struct{ fault.List }

// maxTopKeys bounds [Config.TopKeys]. It is what all rules may keep together.
const maxTopKeys = 50_000

func (f *faults) topKeys(n int) {
	if n < 0 || n > maxTopKeys {
		f.Addf("top-keys", "%d: out of range 0 to %d", n, maxTopKeys)
	}
}

// metrics checks the fields about metrics.
func (f *faults) metrics(c *Config) {
	if c.NearLimit <= 0 || c.NearLimit >= 1 {
		f.Addf("near-limit", "%v: want a share above 0 and below 1, such as 0.8", c.NearLimit)
	}
	if n := c.MetricNamespaces; n < 1 || n > maxMetricNamespaces {
		f.Addf("metric-namespaces", "%d: out of range 1 to %d", n, maxMetricNamespaces)
	}
}

// maxMetricNamespaces bounds [Config.MetricNamespaces].
const maxMetricNamespaces = 10_000

// telemetry checks the fields about keys and the collector.
func (f *faults) telemetry(c *Config) {
	if c.LogKeys != "" {
		f.oneOf("log-keys", c.LogKeys, top.KeyForms())
	}
	if c.LogKeysSecret != "" && c.LogKeys != string(top.KeyHashed) {
		f.Addf("WEIR_LOG_KEYS_SECRET", "only with --log-keys hashed")
	}
	if c.OTLPEndpoint != "" {
		u, err := url.Parse(c.OTLPEndpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			f.Addf("otlp-endpoint", "want a URL such as http://localhost:4318") // its text can have a password
		}
	}
}

// listeners checks the addresses, and that no two listeners share one, which the
// operating system would report as a port that another process uses.
func (f *faults) listeners(c *Config) {
	all := c.Listeners()
	for i, l := range all {
		if l.err != nil {
			f.Addf(l.Flag, "%v", l.err)
			continue
		}
		for _, other := range all[:i] {
			if at := l.Address.Host; at == other.Address.Host && !strings.HasSuffix(at, ":0") {
				f.Addf(l.Flag, "%q: the same as %s; give it its own port", l.text, other.Flag)
			}
		}
	}
}

// koala checks the fields about koala.
func (f *faults) koala(c *Config) {
	if c.Koala != "" && c.Rules != "" {
		f.Addf("koala", "not with rules: all rules come from one file; weir import koala converts koala's")
	}
}

// store checks the fields about the store. It reports the first fault only:
// the others often follow from it.
func (f *faults) store(c *Config) {
	switch {
	case c.Nodes < AutoNodes:
		f.Addf("nodes", "%d: want the number of instances, at least 1", c.Nodes)
	case c.StoreTimeout != 0 && c.StoreTimeout < time.Millisecond:
		f.Addf("store-timeout", "%v: want at least 1ms", c.StoreTimeout)
	case c.Store != "":
	case c.StoreTimeout != 0:
		f.Addf("store-timeout", "only with store")
	case c.Nodes > 1 || c.Nodes == AutoNodes:
		f.Addf("nodes", "only with store: instances that count in memory do not share quotas")
	case c.ReadyNeedsStore:
		f.Addf("ready-needs-store", "only with store")
	}
}

// headers checks the fields about headers.
func (f *faults) headers(c *Config) {
	f.oneOf("headers", c.Headers, headers.Dialects())
	if !(c.HeadersJitter >= 0 && c.HeadersJitter <= 1) {
		f.Addf("headers-jitter", "%v: want a part from 0 to 1, such as 0.1", c.HeadersJitter)
	}
}

// HeadersFormat returns how /v1/gate states the limits of a decision.
func (c *Config) HeadersFormat() headers.Format {
	return headers.Format{Dialect: headers.Dialect(c.Headers), Jitter: c.HeadersJitter}
}

// data checks the fields about the data directory.
func (f *faults) data(c *Config) {
	switch {
	case c.Data != "":
	case c.Sync != "":
		f.Addf("sync", "only with data")
	case c.SyncInterval != 0:
		f.Addf("sync-interval", "only with data")
	case c.ServeWhileLoading:
		f.Addf("serve-while-loading", "only with data")
	}
	if c.Sync != "" {
		f.oneOf("sync", c.Sync, Syncs())
	}
	if d := c.SyncInterval; d != 0 && (d < time.Millisecond || d > time.Hour) {
		f.Addf("sync-interval", "%v: out of range 1ms to 1h", d)
	}
}

// Syncs returns the valid values of Sync.
func Syncs() []string { return []string{"always", "interval", "os"} }

// notNegative checks that d is not below 0.
func (f *faults) notNegative(field string, d time.Duration) {
	if d < 0 {
		f.Addf(field, "%v: negative", d)
	}
}

// oneOf checks that value is one of allowed.
func (f *faults) oneOf(field, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		f.Addf(field, "%q: not one of %s", value, strings.Join(allowed, ", "))
	}
}

// ResourceLimits limits the concurrent work of the service. 0 in a field means no limit.
type ResourceLimits struct {
	// Connections is the maximum number of connections of the API, of gRPC and of koala's
	// calls, for each of the three. The admin address has a separate, fixed limit.
	Connections int

	// Requests is the maximum number of requests that are decided at the same time.
	Requests int64

	// RequestMemory is the maximum memory of large bodies, batches and their answers at
	// the same time.
	RequestMemory Bytes

	// Answer is the maximum size of an answer.
	Answer Bytes

	// Memory is the maximum memory of all counters. Negative: half of the
	// memory that this process may use.
	Memory Bytes
}

// AutoMemory is the value of [ResourceLimits.Memory] that means half of the memory.
const AutoMemory Bytes = -1

// defaultResources returns the resource limits of [Default].
func defaultResources() ResourceLimits {
	return ResourceLimits{
		Connections:   4096,
		Requests:      1024,
		RequestMemory: 64 << 20,
		Answer:        4 << 20,
		Memory:        AutoMemory,
	}
}

// resources checks the resource limits.
func (f *faults) resources(c *Config) {
	b := &c.Resources
	if b.Connections < 0 {
		f.Addf("max-connections", "%d: negative", b.Connections)
	}
	if b.Requests < 0 {
		f.Addf("max-requests", "%d: negative", b.Requests)
	}
	// The largest answer takes about eight times its size, including the structures from
	// which it is written, and a caller gets half of the memory.
	if b.RequestMemory != 0 && (b.Answer == 0 || b.RequestMemory < 16*b.Answer) {
		f.Addf("max-request-memory", "%v: want at least 16 times max-answer, %v, so that the largest answer fits", b.RequestMemory, 16*b.Answer)
	}
	if m := b.Memory; m > 0 && m < 16<<20 {
		f.Addf("memory", "%v: want at least 16MiB", m)
	}
}
