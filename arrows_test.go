package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weirhq/weir"

// arrow lists what one package may import: which of ours, by folder, and which
// modules of others. Package fault is open to all. The standard library is open
// to all but the pure packages.
type arrow struct {
	ours   []string
	theirs []string
	pure   bool // no IO, no clock, no lock, no randomness
}

// arrows lists the packages from the bottom up: a package may import packages
// above its line in this list, never below. The test fails for a package without
// a line and for a line without a package.
var arrows = map[string]arrow{
	// The library: module github.com/weirhq/weir, which requires nothing.
	"internal/datatest":                {}, // tests only
	"internal/printable":               {pure: true},
	"fault":                            {ours: []string{"internal/printable"}, pure: true},
	"internal/transition":              {pure: true},
	"window":                           {ours: []string{"internal/transition"}, pure: true},
	"internal/seal":                    {ours: []string{"window"}, pure: true},
	"internal/stated":                  {pure: true},
	"internal/once":                    {ours: []string{"window"}, pure: true},
	"receipt":                          {ours: []string{"internal/seal"}, pure: true},
	"internal/run":                     {pure: true},
	"rolling":                          {},
	"compat/rate":                      {},
	"internal/address":                 {pure: true},
	"internal/ruleset":                 {ours: []string{"internal/address", "window"}, pure: true},
	"rule":                             {ours: []string{"internal/address", "internal/ruleset", "window"}, pure: true},
	"store":                            {ours: []string{"internal/transition", "window"}},
	"store/remote":                     {ours: []string{"store", "window"}},
	"store/storetest":                  {ours: []string{"internal/hook", "store", "window"}},
	"store/memstore/internal/table":    {pure: true},
	"store/memstore/internal/keyed":    {pure: true},
	"internal/journal":                 {ours: []string{"internal/seal", "store", "window"}, pure: true},
	"store/memstore":                   {ours: []string{"internal/journal", "internal/once", "internal/seal", "internal/stated", "internal/transition", "store", "store/memstore/internal/keyed", "store/memstore/internal/table", "window"}},
	"internal/limittext":               {ours: []string{"window"}, pure: true},
	"internal/hook":                    {ours: []string{"store", "store/memstore", "store/remote", "window"}},
	"internal/lease":                   {}, // pure but for atomic words
	"store/leasestore":                 {ours: []string{"internal/hook", "internal/lease", "store", "window"}},
	"internal/datadir/internal/format": {pure: true},
	"internal/datadir":                 {ours: []string{"internal/datadir/internal/format", "internal/hook", "internal/journal", "internal/limittext", "internal/seal", "store", "store/memstore", "window"}},
	"store/durable":                    {ours: []string{"internal/datadir", "internal/hook", "store", "window"}},
	"internal/export":                  {ours: []string{"window"}},
	"internal/override":                {pure: true},
	"internal/plan":                    {ours: []string{"fault", "internal/override", "internal/ruleset", "internal/seal", "rule", "store", "window"}, pure: true},
	"internal/report":                  {ours: []string{"internal/hook", "internal/limittext", "internal/once", "internal/seal", "internal/transition", "store", "store/remote", "window"}},
	"internal/drive":                   {ours: []string{"internal/hook", "internal/plan", "internal/report", "rule", "store", "store/memstore", "window"}},
	".": {ours: []string{
		"fault", "internal/drive", "internal/export", "internal/hook", "internal/once", "internal/override", "internal/plan", "internal/report", "internal/ruleset", "internal/run", "internal/seal", "receipt", "rule", "store", "store/memstore", "window",
	}},
	"internal/jsontext":   {pure: true},
	"headers":             {ours: []string{".", "internal/jsontext", "rule", "store", "window"}},
	"internal/clientaddr": {ours: []string{"internal/address"}},
	"guard":               {ours: []string{".", "headers", "internal/clientaddr", "rule", "store", "window"}},
	"internal/guardtest":  {ours: []string{".", "guard", "rule", "store", "window"}}, // tests only
	"httplimit":           {ours: []string{".", "guard", "headers", "internal/clientaddr"}},
	"httplimit/outbound":  {ours: []string{".", "headers"}},
	"weirslog":            {ours: []string{".", "store", "window"}},
	"weirtest":            {ours: []string{"internal/ruleset", "store", "store/memstore", "window"}},

	// Modules of their own for users of the library.
	"store/redisstore/internal/keyname": {ours: []string{"store", "window"}, pure: true},
	"store/redisstore/internal/script":  {ours: []string{"store", "store/redisstore/internal/keyname", "window"}},
	"store/redisstore/internal/conn": {
		ours:   []string{"store", "store/redisstore/internal/script", "store/remote", "window"},
		theirs: []string{"github.com/redis/rueidis"},
	},
	"store/redisstore/internal/doctor": {ours: []string{"store/remote"}, pure: true},
	"store/redisstore": {
		ours:   []string{"fault", "store", "store/redisstore/internal/conn", "store/redisstore/internal/doctor", "store/redisstore/internal/keyname", "store/redisstore/internal/script", "store/remote", "window"},
		theirs: []string{"github.com/redis/rueidis"},
	},
	"store/pgstore":              {ours: []string{"fault", "store", "store/remote", "window"}, theirs: []string{"github.com/jackc/pgx"}},
	"internal/pgtest":            {}, // tests only, a module of its own
	"internal/redistest":         {}, // tests only, a module of its own
	"rulefile/internal/testfile": {ours: []string{"rule"}},
	"rulefile": {
		ours:   []string{"rulefile/internal/testfile", "rule", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},
	"rulefile/ruletest": {ours: []string{".", "rulefile", "rulefile/internal/testfile", "store", "store/memstore", "window"}},
	"api":               {},
	"api/weir/v1":       {theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}}, // generated
	"client/ratelimit":  {ours: []string{"headers", "store", "window"}, theirs: []string{"github.com/dunglas/httpsfv"}},
	"client": {
		ours:   []string{".", "api/weir/v1", "receipt", "rule", "store", "window"},
		theirs: grpcModules,
	},
	"grpclimit":        {ours: middleware, theirs: grpcModules},
	"contrib/connect":  {ours: middleware, theirs: append([]string{"connectrpc.com/connect"}, grpcModules...)},
	"contrib/echo":     {ours: middleware, theirs: []string{"github.com/labstack/echo"}},
	"contrib/fiber":    {ours: middleware, theirs: []string{"github.com/gofiber/fiber"}},
	"contrib/gin":      {ours: middleware, theirs: []string{"github.com/gin-gonic/gin"}},
	"contrib/hertz":    {ours: middleware, theirs: []string{"github.com/cloudwego/hertz"}},
	"contrib/weirotel": {ours: []string{".", "store"}, theirs: []string{"go.opentelemetry.io/otel"}},
	"contrib/weirprom": {ours: []string{".", "store"}, theirs: []string{"github.com/prometheus/client_golang"}},

	// The program: module github.com/weirhq/weir/cmd/weir.
	"cmd/weir/internal/needtest":       {}, // tests only
	"cmd/weir/internal/files":          {},
	"cmd/weir/internal/sizes":          {pure: true},
	"cmd/weir/internal/logs/accesslog": {ours: []string{"window"}},
	"cmd/weir/internal/replay":         {ours: []string{".", "cmd/weir/internal/files", "cmd/weir/internal/logs/accesslog", "internal/transition", "rule", "store", "store/memstore", "window"}, theirs: []string{"github.com/klauspost/compress"}},
	"cmd/weir/internal/logs": {
		ours:   []string{"cmd/weir/internal/logs/accesslog", "cmd/weir/internal/replay", "cmd/weir/internal/urlpath", "window"},
		theirs: []string{"github.com/goccy/go-yaml", "github.com/tidwall/gjson"},
	},
	"cmd/weir/internal/record":    {ours: []string{".", "internal/jsontext", "rule", "store", "window"}},
	"cmd/weir/internal/findings":  {ours: []string{"rulefile"}},
	"cmd/weir/internal/trial":     {ours: []string{".", "cmd/weir/internal/access", "cmd/weir/internal/files", "cmd/weir/internal/logs", "cmd/weir/internal/replay", "cmd/weir/internal/rulewriter", "rule", "rulefile", "rulefile/ruletest", "window"}},
	"cmd/weir/internal/access":    {ours: []string{".", "cmd/weir/internal/files", "internal/clientaddr", "rule"}},
	"cmd/weir/internal/sharedlog": {ours: []string{"internal/export", "window"}},
	"cmd/weir/internal/top":       {ours: []string{".", "cmd/weir/internal/sharedlog", "internal/export", "internal/hook", "rule", "store", "store/remote", "window"}},
	"cmd/weir/internal/kept":      {ours: []string{"internal/hook", "store", "store/remote"}},
	"cmd/weir/internal/overrides": {ours: []string{".", "cmd/weir/internal/kept", "cmd/weir/internal/sizes", "internal/jsontext", "internal/override", "internal/plan", "internal/ruleset", "rule", "store", "store/remote", "window"}},
	"cmd/weir/internal/audit":     {ours: []string{"cmd/weir/internal/sharedlog", "internal/export", "internal/hook", "store/remote", "window"}},
	"cmd/weir/internal/namespace": {ours: []string{".", "cmd/weir/internal/access", "cmd/weir/internal/audit", "cmd/weir/internal/overrides", "cmd/weir/internal/files", "cmd/weir/internal/top", "internal/run"}},
	"cmd/weir/internal/answer":    {ours: []string{".", "cmd/weir/internal/access", "cmd/weir/internal/audit", "cmd/weir/internal/namespace", "cmd/weir/internal/overrides", "cmd/weir/internal/sizes", "internal/export", "internal/jsontext", "internal/once", "internal/run", "rule", "store", "window"}},
	"cmd/weir/internal/apitest": { // tests only
		ours:   []string{"api"},
		theirs: []string{"github.com/goccy/go-yaml", "github.com/santhosh-tekuri/jsonschema"},
	},
	"cmd/weir/internal/scripttest": { // tests only
		ours: []string{".", "cmd/weir/internal/access", "rule", "rulefile", "store/memstore", "window"},
	},
	"cmd/weir/internal/clienttest": {}, // tests only
	"cmd/weir/internal/metrics": {
		ours:   []string{".", "internal/datadir", "internal/hook", "rule", "store", "store/remote", "window"},
		theirs: []string{"github.com/prometheus"},
	},
	"cmd/weir/internal/page": {ours: []string{
		".", "cmd/weir/internal/access", "cmd/weir/internal/answer", "cmd/weir/internal/audit", "cmd/weir/internal/files", "cmd/weir/internal/findings", "cmd/weir/internal/logs", "cmd/weir/internal/metrics", "cmd/weir/internal/namespace", "cmd/weir/internal/record", "cmd/weir/internal/replay", "cmd/weir/internal/top", "cmd/weir/internal/trial", "internal/export", "internal/jsontext", "internal/run", "rule", "rulefile", "store/remote", "window",
	}},
	"cmd/weir/internal/telemetry": {
		ours:   []string{".", "cmd/weir/internal/top", "internal/run", "store"},
		theirs: []string{"github.com/prometheus/client_golang", "go.opentelemetry.io"},
	},
	"cmd/weir/internal/rulefmt": {ours: []string{"fault"}, theirs: []string{"github.com/goccy/go-yaml"}, pure: true},
	"cmd/weir/internal/rulewriter": {
		ours:   []string{"internal/printable", "rule", "rulefile", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},
	"cmd/weir/internal/koalafile": {ours: []string{"cmd/weir/internal/files", "cmd/weir/internal/rulewriter", "rule", "window"}},
	"cmd/weir/internal/koalaapi":  {ours: append([]string{"cmd/weir/internal/koalafile"}, frontEnd...)},
	"cmd/weir/internal/config":    {ours: []string{"cmd/weir/internal/access", "cmd/weir/internal/events", "cmd/weir/internal/top", "headers", "internal/clientaddr"}},
	"cmd/weir/internal/grpcserver": {
		ours:   []string{".", "api/weir/v1", "cmd/weir/internal/access", "cmd/weir/internal/answer", "cmd/weir/internal/namespace", "cmd/weir/internal/sizes", "internal/once", "internal/run", "store"},
		theirs: grpcModules,
	},
	"cmd/weir/internal/grpcapi": {
		ours:   append([]string{"api/weir/v1", "cmd/weir/internal/audit", "cmd/weir/internal/events", "cmd/weir/internal/grpcserver", "cmd/weir/internal/overrides", "cmd/weir/internal/top", "internal/export"}, frontEnd...),
		theirs: grpcModules,
	},
	"cmd/weir/internal/envoyfile": {
		ours:   []string{"cmd/weir/internal/files", "cmd/weir/internal/rulewriter", "internal/stated", "rule", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},
	"cmd/weir/internal/xds": {
		ours:   []string{"cmd/weir/internal/config", "cmd/weir/internal/envoyfile"},
		theirs: []string{"github.com/cenkalti/backoff/v5", "github.com/envoyproxy/go-control-plane", "google.golang.org/grpc", "google.golang.org/protobuf"},
	},
	"cmd/weir/internal/xdstest": {theirs: []string{"github.com/envoyproxy/go-control-plane", "google.golang.org/grpc", "google.golang.org/protobuf"}}, // tests only
	"cmd/weir/internal/envoyrls": {
		ours:   append([]string{"cmd/weir/internal/envoyfile", "cmd/weir/internal/grpcserver", "headers", "cmd/weir/internal/urlpath"}, frontEnd...),
		theirs: append([]string{"github.com/envoyproxy/go-control-plane/envoy"}, grpcModules...),
	},
	"cmd/weir/internal/envoyrlqs": {
		ours:   append([]string{"cmd/weir/internal/grpcserver", "window", "cmd/weir/internal/urlpath"}, frontEnd...),
		theirs: append([]string{"github.com/envoyproxy/go-control-plane/envoy"}, grpcModules...),
	},
	"cmd/weir/internal/respapi": {ours: append([]string{"internal/jsontext"}, frontEnd...)},
	"cmd/weir/internal/httpapi": {ours: append([]string{"api", "cmd/weir/internal/audit", "cmd/weir/internal/events", "cmd/weir/internal/overrides", "cmd/weir/internal/top", "headers", "internal/clientaddr", "internal/export", "internal/jsontext", "internal/ruleset", "cmd/weir/internal/urlpath"}, frontEnd...)},
	"cmd/weir/internal/events": {
		ours:   []string{".", "cmd/weir/internal/access", "cmd/weir/internal/files", "cmd/weir/internal/kept", "cmd/weir/internal/top", "rule", "store", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},
	"cmd/weir/internal/urlpath": {ours: []string{"."}},
	"cmd/weir/internal/stores":  {ours: []string{"cmd/weir/internal/kept", "internal/datadir", "store", "store/memstore", "store/pgstore", "store/redisstore", "store/remote", "window"}},
	"cmd/weir/internal/server": {
		ours: []string{
			".", "headers", "internal/clientaddr", "internal/hook", "internal/jsontext", "internal/stated", "rule", "rulefile", "store", "store/leasestore", "store/remote", "window",
			"cmd/weir/internal/access", "cmd/weir/internal/answer", "cmd/weir/internal/config", "cmd/weir/internal/envoyfile", "cmd/weir/internal/envoyrlqs", "cmd/weir/internal/envoyrls", "cmd/weir/internal/events", "cmd/weir/internal/files", "cmd/weir/internal/grpcapi", "cmd/weir/internal/grpcserver",
			"cmd/weir/internal/audit", "cmd/weir/internal/httpapi", "cmd/weir/internal/kept", "cmd/weir/internal/koalaapi", "cmd/weir/internal/koalafile", "cmd/weir/internal/metrics", "cmd/weir/internal/namespace", "cmd/weir/internal/overrides", "cmd/weir/internal/page", "cmd/weir/internal/record", "cmd/weir/internal/respapi", "cmd/weir/internal/stores",
			"cmd/weir/internal/telemetry", "cmd/weir/internal/top", "cmd/weir/internal/trial", "cmd/weir/internal/xds",
		},
		theirs: []string{"github.com/fsnotify/fsnotify"},
	},
	"cmd/weir": {
		ours: []string{
			".", "headers", "internal/datadir", "internal/printable", "rule", "rulefile", "rulefile/ruletest", "store/memstore", "window",
			"cmd/weir/internal/access", "cmd/weir/internal/answer", "cmd/weir/internal/config", "cmd/weir/internal/envoyfile", "cmd/weir/internal/events", "cmd/weir/internal/files", "cmd/weir/internal/findings", "cmd/weir/internal/httpapi", "cmd/weir/internal/koalafile", "cmd/weir/internal/logs", "cmd/weir/internal/namespace",
			"cmd/weir/internal/page", "cmd/weir/internal/replay", "cmd/weir/internal/rulefmt", "cmd/weir/internal/rulewriter", "cmd/weir/internal/server", "cmd/weir/internal/stores", "cmd/weir/internal/top", "cmd/weir/internal/trial",
		},
		theirs: []string{"github.com/schollz/progressbar", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
	},
	"deploy/compose":    {}, // tests only
	"deploy/kubernetes": {}, // tests only
	"scripts/notices":   {},
	"scripts/release":   {},
	"scripts/surface":   {},
}

// middleware is what the middleware for a framework may import.
var middleware = []string{".", "guard", "headers", "httplimit", "rule", "window"}

// frontEnd is what the front ends may import: no other front end, and of the
// stores only the contract, for its verbs.
var frontEnd = []string{
	".", "cmd/weir/internal/access", "cmd/weir/internal/answer", "cmd/weir/internal/namespace", "cmd/weir/internal/sizes", "internal/once", "internal/run", "internal/stated", "receipt", "rule", "store", "window",
}

// grpcModules are what packages that serve gRPC may import.
var grpcModules = []string{
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// testModules are open to every test of a module other than the library, and to tests
// only.
var testModules = []string{
	"github.com/compose-spec/compose-go",
	"github.com/dunglas/httpsfv",
	"github.com/envoyproxy/go-control-plane/envoy",
	"github.com/goccy/go-yaml",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema",
	"go.opentelemetry.io/proto/otlp",
	"go.uber.org/goleak",
	"helm.sh/helm",
	"k8s.io",
	"sigs.k8s.io",
	"google.golang.org/protobuf",
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
}

// impure are the packages, with all below them, that a pure package may not
// import. Of net, netip is only a way to write addresses.
var impure = []string{
	"context", "crypto/rand", "io/ioutil", "log", "math/rand", "net", "os",
	"runtime", "sync", "syscall", "unsafe",
}

// clocks are the functions of package time that read the clock or wait for it.
var clocks = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// TestArrows reads the files itself instead of asking `go list`, so that the
// go command knows what the result depends on and caches it rightly.
func TestArrows(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	defer func() {
		for pkg := range arrows {
			if !found[pkg] {
				t.Errorf("the table of arrows has package %s, which does not exist", pkg)
			}
		}
	}()
	for _, file := range goFiles(t) {
		if strings.HasPrefix(file, "benchmarks/") {
			continue // it imports whatever it compares
		}
		pkg := path.Dir(file)
		found[pkg] = true
		allowed, known := arrows[pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table of arrows", file, pkg)
			continue
		}
		isTest := strings.HasSuffix(file, "_test.go")

		syntax := parse(t, file)
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: import %s: %v", file, spec.Path.Value, err)
			}
			if why := allowed.refuses(imported, isTest); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
		if allowed.pure && !isTest {
			for _, name := range clockReads(syntax) {
				t.Errorf("%s calls time.%s: a pure package gets the time from its caller", file, name)
			}
		}
	}
}

// refuses returns the reason why a may not import a package, or nothing when it may. A test
// may import whatever of ours it wants: Go itself refuses circles.
func (a arrow) refuses(imported string, isTest bool) string {
	if ours, ok := cutModule(imported); ok {
		if isTest || ours == "fault" || slices.Contains(a.ours, ours) {
			return ""
		}
		return "the arrows do not point there"
	}
	if host, _, _ := strings.Cut(imported, "/"); strings.Contains(host, ".") {
		if within(imported, a.theirs) || isTest && within(imported, testModules) {
			return ""
		}
		return "this module is not open to this package"
	}
	if a.pure && !isTest && imported != "net/netip" && within(imported, impure) {
		return "a pure package has no IO, clock, lock or randomness"
	}
	return ""
}

// cutModule turns the path of one of our packages into its folder.
func cutModule(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// within reports whether a package is one of, or below one of, the paths.
func within(imported string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return imported == p || strings.HasPrefix(imported, p+"/")
	})
}

// clockReads are the functions in clocks that a file mentions.
func clockReads(file *ast.File) []string {
	var reads []string
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, sel.Sel.Name) {
				reads = append(reads, sel.Sel.Name)
			}
		}
		return true
	})
	return reads
}

// TestRequiresNothing holds the library's go.mod empty: whoever uses it gets no other
// module, and no other version of one. Its packages, and their tests, import the standard
// library and each other.
func TestRequiresNothing(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		if moduleOf(t, file) != "." {
			continue
		}
		for _, spec := range parse(t, file).Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			ours, ok := cutModule(imported)
			if host, _, _ := strings.Cut(imported, "/"); strings.Contains(host, ".") && (!ok || moduleOf(t, ours+"/x.go") != ".") {
				t.Errorf("%s imports %s: the library has only itself and the standard library, in tests too", file, imported)
			}
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "module " + module + "\n\ngo 1.26.0\n"; string(mod) != want {
		t.Errorf("got go.mod\n%s\nwant\n%s", mod, want)
	}
	if _, err := os.Stat("go.sum"); err == nil {
		t.Error("there is a go.sum, although no module is required")
	}
}

// TestInternals refuses imports of the library's internal packages by all modules but
// the library and the program, so that library modules of different versions work
// together. internal/redistest and internal/pgtest are modules of their own, for tests and benchmarks, and
// internal/datatest and internal/guardtest are for tests, which run with the library of the same commit. Benchmarks
// are not released, and their drills of leases audit admissions by a hook.
func TestInternals(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		if in := moduleOf(t, file); in == "." || in == "cmd/weir" {
			continue
		}
		for _, spec := range parse(t, file).Imports {
			if server, of := strings.CutPrefix(spec.Path.Value, `"`+module+"/internal/"); of && (strings.HasSuffix(file, "_test.go") || moduleOf(t, file) == "benchmarks") && slices.Contains([]string{`datatest"`, `guardtest"`, `pgtest"`, `redistest"`}, server) {
				continue
			}
			if strings.HasPrefix(file, "benchmarks/leases/") && spec.Path.Value == `"`+module+`/internal/hook"` {
				continue
			}
			if strings.HasPrefix(spec.Path.Value, `"`+module+"/internal/") {
				t.Errorf("%s imports %s: internal packages of the library are open to the program only", file, spec.Path.Value)
			}
		}
	}
}

// moduleOf returns the folder of the module that a file belongs to.
func moduleOf(t *testing.T, file string) string {
	t.Helper()
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == "." {
			t.Fatalf("%s is in no module", file)
		}
	}
}

// goFiles returns the Go files of all modules, by slash-separated paths from the root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			if strings.HasSuffix(name, ".go") {
				files = append(files, filepath.ToSlash(name))
			}
			return nil
		}
		base := entry.Name()
		if name == "examples" {
			return filepath.SkipDir // programs to copy, which the go command builds only by their names
		}
		if name != "." && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("got no Go files, want those of all modules")
	}
	return files
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return syntax
}
