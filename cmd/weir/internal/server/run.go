// Package server assembles the service and runs it: it listens, reloads rules,
// reports its health, and drains when it is told to stop. No other package
// imports both front ends and stores.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrlqs"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/cmd/weir/internal/xds"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/internal/hook"
)

// Run serves as cfg states until ctx is done, and then lets requests in flight
// finish. It prints the addresses to out and logs to logs. It returns nil after
// an orderly end.
func Run(ctx context.Context, cfg config.Config, out, logs io.Writer) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	log, ended := openLog(cfg, logs)
	defer ended()
	hangups := make(chan os.Signal, 1) // during the start, too, which a reload must not end
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	commit, _ := Commit()
	numbers := metrics.New(metrics.Config{Version: Version(), Commit: commit, NearLimit: cfg.NearLimit, Namespaces: cfg.MetricNamespaces})
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	credentials, err := openCredentials(cfg, numbers, log)
	if err != nil {
		return err
	}
	defer func() { _ = credentials.close() }()
	where, err := placeOf(cfg)
	if err != nil {
		return err
	}
	first, bad, err := where.read()
	if err != nil {
		return err
	}
	begun := time.Now()
	backends, err := openBackends(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backends.close()) }()
	if backends.here != nil {
		_ = backends.here.beat(ctx, log) // run beats again
	}
	if err := backends.examine(ctx, begun.Add(examineWithin), log); err != nil {
		return err
	}
	lists, outside, err := keyTexts(cfg)
	if err != nil {
		return err // unreachable after Validate
	}
	telemetry, err := openTelemetry(ctx, cfg, numbers, outside, log)
	if err != nil {
		return err
	}
	defer endTelemetry(telemetry, log)
	tops := newTops(cfg, backends, lists)
	defer tops.Close()
	numbers.WatchDenials(tops.Dropped)
	keeps := newKeeper(backends, outside, log)
	defer keeps.close()
	events, err := openEvents(cfg, backends, keeps, lists, numbers, log)
	if err != nil {
		return err
	}
	episodes := newEpisodes()
	recorder, err := newRecorder(cfg, lists)
	if err != nil {
		return err // unreachable after Validate
	}
	rules, err := newNamespaces(parts{cfg, backends, numbers, tops, events, episodes, credentials, log, &keeps.Kept, telemetry, outside, recorder}, where, first, bad)
	if err != nil {
		return err
	}
	defer rules.close()
	keeps.report(events, rules.set)
	numbers.Watch(rules.stats)
	if backends.shared != nil {
		numbers.WatchNodes(backends.nodes)
		numbers.WatchLeases(backends.leases.(hook.Leaser).Leases)
	}
	if backends.shared != nil || backends.local.Meanwhile != nil {
		numbers.WatchReports(backends.reporting.Reports)
	}
	if backends.local.Kept != nil {
		numbers.WatchData(backends.local.Kept.Stats)
	}
	if backends.here != nil {
		numbers.WatchInstances(backends.here.number)
	}

	// Goroutines that do not serve requests end before Run returns.
	var group sync.WaitGroup
	defer func() { endGroup(&group, log) }()
	background, stop := context.WithCancel(ctx)
	defer stop()
	lasting, end := context.WithCancel(context.WithoutCancel(ctx)) // until the last request is answered
	defer end()

	ready := readiness{store: backends, rules: rules, needed: cfg.ReadyNeedsStore, rulesNeeded: cfg.Envoy.XDS != nil && !cfg.Envoy.XDS.ReadyWithout}
	at := cfg.Listeners()
	auth := credentials.auth(at[0], access.ReachNamed)
	proxies, err := clientaddr.NewProxies(cfg.Access.Proxies)
	if err != nil {
		return err // unreachable after Validate
	}
	resources := newResources(cfg, numbers, log)
	resources.loading = backends.refusing()
	envoy := newEnvoy(cfg, rules.set, where.file.envoy, numbers, lists)
	requests := resources.requests("http")
	others := map[string]http.HandlerFunc{"/healthz": healthz, "/readyz": ready.readyz}
	envoy.addRoutes(others, auth, requests, &ready)
	api := httpapi.New(rules.set, httpapi.Config{
		Auth: auth, Proxies: proxies, Resources: requests,
		Headers: cfg.HeadersFormat(), Others: others, Events: events,
	})
	main, err := listen(at[0], credentials.certs, resources.connections, resources.incomplete(), resources.shedding("http"), telemetry.Handler(api), log)
	if err != nil {
		return err
	}
	fronts := []front{main}
	defer func() {
		for _, f := range fronts {
			_ = f.Close()
		}
	}()
	main.WriteTimeout = 10 * time.Second // not for admin: a profile takes longer
	adminAuth := credentials.auth(at[1], access.ReachNamed)
	forward := httpapi.New(rules.set, httpapi.Config{Auth: adminAuth, Resources: requests, Events: events})
	site := newSite(cfg, at[1].Address, adminAuth, rules, main.url())
	defer site.close()
	auth = credentials.auth(at[1], where.whole())
	calls := newAdmin(rules, numbers, &ready, auth, forward, site.page(), envoy.adminRoutes())
	admin, err := listen(at[1], credentials.certs, adminConnections(descriptors()), resources.incomplete(), resources.shedding("admin"), calls, log)
	if err != nil {
		return err
	}
	defer admin.Close()
	admin.socket.(*connLimiter).grace = newcomerGrace
	var optional []named
	var remote *grpcserver.Server // nil: no gRPC
	for _, l := range at[2:] {
		var f front
		switch l.Name {
		case "grpc":
			f, remote, err = openGRPC(l, cfg, grpcapi.New(rules.set).WithEvents(events), envoy.API, envoyrlqs.New(rules.set, int64(cfg.Resources.RequestMemory)), rules.telemetry, credentials, resources)
		case "resp":
			f, err = openRESP(l, cfg, rules.set, backends, credentials, resources, numbers)
		case "koala":
			f, err = openKoala(l, cfg, backends, rules, credentials, resources, log)
		case "metrics":
			f, err = listen(l, credentials.certs, adminConnections(descriptors()), resources.incomplete(), resources.shedding(l.Name), calls.metricsOnly(credentials.auth(l, where.whole()), cfg.MetricsPath), log)
		}
		if err != nil {
			return err
		}
		fronts, optional = append(fronts, f), append(optional, named{l, f})
	}

	group.Go(func() { sweep(background, backends) })
	group.Go(func() { episodes.run(background, log) })
	group.Go(func() { tops.Run(background) })
	if recorder != nil {
		group.Go(func() { recorder.Run(background) })
	}
	if site != nil {
		group.Go(func() { site.history.Run(background) })
	}
	group.Go(func() { keeps.run(lasting) })
	group.Go(func() { events.Run(lasting) })
	if backends.here != nil {
		group.Go(func() { backends.here.run(background, log) })
	}
	group.Go(func() { rules.onSignal(background, hangups) })
	if cfg.Envoy.XDS != nil {
		client := xds.Client{Config: *cfg.Envoy.XDS, Apply: rules.receive, Log: log}
		group.Go(func() { client.Run(background) })
	}
	if cfg.Watch && where.path() != "" {
		group.Go(func() { watch(background, cfg.WatchEvery, rules, log) })
	}
	if cfg.Watch {
		group.Go(func() { credentials.watch(background) })
	}

	if remote != nil {
		remote.SetReady(ready.is())
		group.Go(func() { ready.report(background, remote) })
	}

	keeps.begin(ctx)
	all := append(fronts[:len(fronts):len(fronts)], admin)
	failed := make(chan error, len(all))
	for _, l := range all {
		group.Go(func() { failed <- l.serve() })
	}
	greet(out, rules, main.url(), admin, site != nil, optional)
	inForce, _ := rules.rules()
	log.Info("listening", "http", main.url(), "admin", admin.url(), "rules", inForce, "namespaces", len(rules.set.All()), "store", backends.place)
	for _, f := range optional {
		log.Info("listening for "+speaks[f.Name].clients, f.Name, f.url())
	}

	select {
	case <-ctx.Done():
	case err := <-failed:
		return err
	}
	ready.draining.Store(true)
	events.EndStreams()
	if site != nil {
		site.EndStreams()
	}
	if remote != nil {
		remote.SetReady(false)
	}
	log.Info("draining", "delay", cfg.DrainDelay, "timeout", cfg.DrainTimeout)
	if err := drain(cfg, fronts, admin, rules); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// named is a front with its listener.
type named struct {
	config.Listener
	front
}

// drain lets requests in flight finish. The admin address is closed last,
// because it reports that the service is draining. Then drain waits for counters that are still being
// loaded, if hits have to be added to them.
func drain(cfg config.Config, fronts []front, admin *listener, rules *namespaces) error {
	time.Sleep(cfg.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	ended := make(chan error, len(fronts))
	for _, l := range fronts {
		go func() { ended <- l.Shutdown(ctx) }()
	}
	var err error
	for range fronts {
		err = errors.Join(err, <-ended)
	}
	if err = errors.Join(err, admin.Shutdown(ctx)); err != nil {
		return fmt.Errorf("requests were still running after %v: %w", cfg.DrainTimeout, err)
	}
	if keys := rules.backends.reporting.Reports().Pending; keys > 0 && !rules.backends.local.Await(ctx) {
		return fmt.Errorf("the counters were still being loaded after %v: what was counted meanwhile is lost, for %d keys", cfg.DrainTimeout, keys)
	}
	return nil
}

// groupEnd is how long goroutines have to end after the last request.
const groupEnd = 2 * time.Second

// endGroup waits until the goroutines of group have ended, but not for a file system
// that does not answer: that must not keep the process alive.
func endGroup(group *sync.WaitGroup, log *slog.Logger) {
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	late := time.NewTimer(groupEnd)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		log.Warn("a file system does not answer; ending without it")
	}
}

// newLog returns the logger that cfg describes.
func newLog(cfg config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // unreachable after Validate
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if top.KeyForm(cfg.LogKeys).Hides() {
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr { return withoutKeys(groups, readable(groups, a)) }
	}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// withoutKeys hides the keys that errors of a store name.
func withoutKeys(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(hideKeys(err.Error(), err))
	}
	return a
}

// hideKeys returns text without the keys that err names, or an error that it wraps.
func hideKeys(text string, err error) string {
	if of, ok := err.(interface{ KeyText() string }); ok {
		text = strings.ReplaceAll(text, of.KeyText(), `"***"`)
	}
	switch of := any(err).(type) { // one level of the tree of errors
	case interface{ Unwrap() error }:
		text = hideKeys(text, of.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range of.Unwrap() {
			text = hideKeys(text, one)
		}
	}
	return text
}

// readable writes durations as text, such as 1.5s. JSON logs would have them as
// numbers of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// sweepSlots is how many slots of the store one sweep visits. A sweep takes a
// few milliseconds, and a pass over ten million keys about a minute and a
// half.
const sweepSlots = 100_000

// sweep frees, once a second, the memory of keys that have expired.
func sweep(ctx context.Context, c *backends) {
	if !c.local.Await(ctx) {
		return
	}
	tick := time.Tick(time.Second)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			c.local.Memory.Sweep(sweepSlots)
		}
	}
}

// readiness decides whether the service accepts new requests.
type readiness struct {
	store    *backends
	rules    *namespaces
	needed   bool // the service is not ready while the store is unavailable
	draining atomic.Bool

	rulesNeeded bool // the service is not ready before it has received rules
}

// healthz answers that the process is running.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// readyz answers whether the service accepts new requests.
func (r *readiness) readyz(w http.ResponseWriter, _ *http.Request) {
	if r.draining.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "draining\n")
		return
	}
	if r.store.loading() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "loading counters from the data directory\n")
		return
	}
	if r.waits() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, errNothingSent.Error()+"\n")
		return
	}
	away := r.store.away()
	if away != "" && r.needed {
		w.WriteHeader(http.StatusServiceUnavailable)
	} else {
		_, _ = io.WriteString(w, "ready\n")
	}
	_, _ = io.WriteString(w, away)
	if _, without := r.rules.rules(); without > 0 && !r.rules.place.file.pushed() {
		fmt.Fprintf(w, "namespaces without rules, because their files have errors: %d\n", without)
	}
}

// is reports whether readyz answers that the service is ready.
func (r *readiness) is() bool {
	return !r.draining.Load() && !r.store.loading() && !r.waits() && (!r.needed || r.store.away() == "")
}

// waits reports whether the service needs rules that no xDS server has sent yet.
func (r *readiness) waits() bool {
	if !r.rulesNeeded {
		return false
	}
	_, without := r.rules.rules()
	return without > 0
}
