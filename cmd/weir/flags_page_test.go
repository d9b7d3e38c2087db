package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the tables of docs/reference/flags.md.
var flagGroups = []struct {
	title string
	flags []string
}{
	{"Rules", []string{"rules", "watch", "watch-every"}},
	{"Listeners", []string{"listen", "admin", "page", "page-write", "record", "metrics-listen", "grpc-listen", "resp-listen", "grpc-max-connection-age", "grpc-max-connection-age-grace"}},
	{"Authentication and TLS", []string{"tokens", "insecure", "tls-cert", "tls-key", "tls-client-ca", "hosts", "trusted-proxies"}},
	{"Counters in memory and on disk", []string{"memory", "data", "sync", "sync-interval", "serve-while-loading"}},
	{"Counters in a store", []string{"store", "store-timeout", "nodes", "ready-needs-store"}},
	{"Resource limits", []string{"max-connections", "max-requests", "max-request-memory", "max-answer"}},
	{"Headers of answers", []string{"headers", "headers-jitter"}},
	{"Logs, metrics and traces", []string{"log-format", "log-level", "log-keys", "top-keys", "events", "webhooks", "near-limit", "metric-namespaces", "otlp-endpoint"}},
	{"The end of the process", []string{"drain-delay", "drain-timeout"}},
	{"In place of envoyproxy/ratelimit", []string{"envoy-config", "envoy-env", "envoy-headers"}},
	{"In place of koala", []string{"koala", "koala-config", "koala-listen"}},
}

const flagsHead = `# Flags and variables of weir serve

<!-- Written by: go test -run TestFlagsPage ./cmd/weir -rewrite-flags -->

Each flag can also be set by its environment variable. Flags take precedence, an empty variable sets nothing, and an unknown one
is a warning. Durations are written as ` + "`1m30s`" + `, sizes as ` + "`64MiB`" + `, and lists with commas.
`

const flagsTail = `
## Variables without a flag

| variable | |
|---|---|
| ` + "`WEIR_TOKEN`" + ` | a token that callers may use, with all scopes unless ` + "`--tokens`" + ` lists it. Commands that ask a service send it |
| ` + "`WEIR_LOG_KEYS_SECRET`" + ` | the secret of [hashed keys](../guides/personal-data.md#keys-in-logs-and-traces); without one it is random |
| ` + "`GOMEMLIMIT`" + ` | replaces nine tenths of the available memory as the limit of Go's garbage collector |
| ` + "`OTEL_…`" + ` | [OpenTelemetry](../guides/monitoring.md#opentelemetry) |
| ` + "`WEIR_ADDR`, `WEIR_CA`, `WEIR_NAMESPACE`" + ` | for commands that ask a service: its address, the authority of its certificate, the namespace |
`

// literal matches what is set as code in a description: addresses, flags, names of metrics.
var literal = regexp.MustCompile(`[a-z0-9]+://[^\s,;]+|unix:PATH|host:port|--[a-z-]+[a-z]|\b[a-z]+_[a-z_]+\b|\bNAME\.yaml`)

var rewriteFlags = flag.Bool("rewrite-flags", false, "write docs/reference/flags.md")

// TestFlagsPage compares docs/reference/flags.md with the flags of weir serve, or writes it.
func TestFlagsPage(t *testing.T) {
	t.Parallel()
	serve, _, err := newRoot().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	const name = "../../docs/reference/flags.md"
	want := flagsPage(t, serve)
	if *rewriteFlags {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a page that everybody reads
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what `go test -run TestFlagsPage ./cmd/weir -rewrite-flags` writes: %v\ngot\n%s\nwant\n%s", name, err, got, want)
	}
}

func flagsPage(t *testing.T, serve *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(flagsHead)
	var told []string
	for _, g := range flagGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | |\n|---|---|---|---|\n", g.title)
		for _, name := range g.flags {
			f := serve.Flags().Lookup(name)
			if f == nil {
				t.Errorf("weir serve has no flag %s", name)
				continue
			}
			told = append(told, name)
			kind, usage := pflag.UnquoteUsage(f)
			value := f.DefValue
			if text, given, ok := strings.Cut(usage, " (default"); ok { // one that the program computes
				usage, value = text, strings.Trim(strings.TrimSuffix(given, ")"), ": ")
			}
			switch {
			case value == "[]" || value == "false" || value == "0s" || value == "$WEIR_STORE":
				value = ""
			case value != "" && !strings.Contains(value, " "):
				value = "`" + value + "`"
			}
			if kind != "" {
				kind = " " + kind
			}
			if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
				kind = "[=" + strings.TrimSpace(kind) + "]"
			}
			fmt.Fprintf(&b, "| `--%s` | `WEIR_%s` | %s | %s |\n", name+kind,
				strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value, strings.ReplaceAll(literal.ReplaceAllString(usage, "`$0`"), "|", `\|`))
		}
	}
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(told, f.Name) && f.Name != "help" && !f.Hidden {
			t.Errorf("the flag %s is in no group of flagGroups", f.Name)
		}
	})
	b.WriteString(flagsTail)
	return b.String()
}
