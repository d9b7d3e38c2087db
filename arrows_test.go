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
	"api":                              {},
	"internal/redact":                  {pure: true},
	"fault":                            {ours: []string{"internal/redact"}, pure: true},
	"window":                           {pure: true},
	"receipt":                          {ours: []string{"window"}, pure: true},
	"rolling":                          {},
	"rule":                             {ours: []string{"window"}, pure: true},
	"store":                            {ours: []string{"window"}},
	"store/storetest":                  {ours: []string{"store", "window"}},
	"store/memstore/internal/table":    {pure: true},
	"store/memstore/internal/keyed":    {pure: true},
	"store/memstore":                   {ours: []string{"store", "store/memstore/internal/keyed", "store/memstore/internal/table", "window"}},
	"internal/limittext":               {ours: []string{"window"}, pure: true},
	"internal/sizes":                   {pure: true},
	"store/durable/internal/format":    {pure: true},
	"store/durable":                    {ours: []string{"internal/limittext", "store", "store/durable/internal/format", "store/memstore", "window"}},
	"store/redisstore/internal/script": {ours: []string{"store", "window"}},
	"store/redisstore/internal/wire": {
		ours:   []string{"store", "store/redisstore/internal/script", "window"},
		theirs: []string{"github.com/redis/rueidis"},
	},
	"store/redisstore/internal/doctor": {pure: true},
	"store/redisstore": {
		ours:   []string{"fault", "store", "store/redisstore/internal/doctor", "store/redisstore/internal/script", "store/redisstore/internal/wire", "window"},
		theirs: []string{"github.com/redis/rueidis"},
	},
	"internal/redistest": {}, // tests only
	"internal/needtest":  {}, // tests only
	"internal/plan":      {ours: []string{"fault", "receipt", "rule", "store", "window"}, pure: true},
	"internal/report":    {ours: []string{"internal/limittext", "store", "window"}},
	"internal/drive":     {ours: []string{"internal/report", "rule", "store", "window"}},
	".": {ours: []string{
		"fault", "internal/drive", "internal/plan", "internal/report", "receipt", "rolling", "rule", "store", "store/memstore", "window",
	}},

	"api/weir/v1": {theirs: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}}, // generated

	"internal/jsontext": {pure: true},
	"headers":           {ours: []string{".", "internal/jsontext", "rule", "store", "window"}},

	"internal/logs/accesslog": {ours: []string{"window"}},
	"replay":                  {ours: []string{".", "internal/logs/accesslog", "internal/redact", "rule", "store", "store/memstore", "window"}},
	"internal/page":           {ours: []string{"replay"}},
	"internal/logs": {
		ours:   []string{"replay", "window"},
		theirs: []string{"github.com/goccy/go-yaml", "github.com/klauspost/compress"},
	},
	"rulefile": {
		ours:   []string{"internal/files", "rule", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},

	"ruletest": {ours: []string{".", "rulefile", "store", "store/memstore", "window"}},

	"internal/files":     {},
	"internal/access":    {ours: []string{".", "internal/files", "rule"}},
	"internal/top":       {ours: []string{".", "rule", "store"}},
	"internal/namespace": {ours: []string{".", "internal/access", "internal/files", "internal/top"}},
	"internal/answer":    {ours: []string{".", "internal/access", "internal/jsontext", "internal/namespace", "receipt", "rule", "store", "window"}},
	"guard":              {ours: []string{".", "headers", "internal/access", "rule", "window"}},
	"httplimit":          {ours: []string{".", "guard", "headers", "internal/access"}},
	"internal/apitest": { // tests only
		ours:   []string{"api"},
		theirs: []string{"github.com/goccy/go-yaml", "github.com/santhosh-tekuri/jsonschema"},
	},
	"internal/scripttest": { // tests only
		ours:   []string{".", "rule", "rulefile", "store", "store/memstore", "window"},
		theirs: []string{"github.com/cockroachdb/datadriven"},
	},
	"internal/metrics": {
		ours:   []string{".", "rule", "store", "window"},
		theirs: []string{"github.com/prometheus"},
	},
	"internal/telemetry": {
		ours:   []string{".", "internal/top", "store"},
		theirs: []string{"github.com/prometheus/client_golang", "go.opentelemetry.io"},
	},
	"internal/koala":       {ours: []string{"internal/files", "rule", "rulefile", "window"}},
	"internal/koala/api":   {ours: append([]string{"internal/koala"}, frontEnd...)},
	"internal/config":      {ours: []string{"headers", "internal/access", "internal/top"}},
	"internal/grpcmessage": {theirs: []string{"google.golang.org/grpc"}},
	"internal/rpcwire": {
		ours:   []string{".", "internal/sizes", "receipt", "rule", "store", "window"},
		theirs: []string{"google.golang.org/protobuf"},
	},
	"client": {
		ours:   []string{".", "api/weir/v1", "internal/grpcmessage", "internal/rpcwire", "internal/sizes", "rule", "store", "window"},
		theirs: grpcModules,
	},
	"internal/grpcserver": {
		ours:   []string{".", "internal/access", "internal/answer", "internal/grpcmessage", "internal/namespace", "internal/sizes", "store"},
		theirs: grpcModules,
	},
	"internal/grpcapi": {
		ours:   append([]string{"api/weir/v1", "internal/grpcserver", "internal/rpcwire", "internal/top"}, frontEnd...),
		theirs: grpcModules,
	},
	"internal/envoyfile": {
		ours:   []string{"internal/files", "rule", "rulefile", "window"},
		theirs: []string{"github.com/goccy/go-yaml"},
	},
	"internal/envoyrls": {
		ours:   append([]string{"headers", "internal/envoyfile", "internal/grpcserver"}, frontEnd...),
		theirs: append([]string{"github.com/envoyproxy/go-control-plane/envoy"}, grpcModules...),
	},
	"internal/respapi":  {ours: append([]string{"internal/jsontext", "internal/redact"}, frontEnd...)},
	"internal/httpapi":  {ours: append([]string{"api", "headers", "internal/top"}, frontEnd...)},
	"internal/shortcut": {},
	"internal/server": {
		ours: []string{
			".", "headers", "rule", "rulefile", "store", "store/durable", "store/memstore", "store/redisstore", "window",
			"internal/access", "internal/answer", "internal/config", "internal/envoyfile", "internal/envoyrls", "internal/files", "internal/grpcapi", "internal/grpcserver", "internal/httpapi", "internal/koala", "internal/koala/api",
			"internal/metrics", "internal/namespace", "internal/redact", "internal/telemetry", "internal/respapi", "internal/shortcut", "internal/top",
		},
		theirs: []string{"github.com/fsnotify/fsnotify"},
	},
	"cmd/weir": {
		ours: []string{
			".", "headers", "internal/access", "internal/config", "internal/envoyfile", "internal/httpapi", "internal/koala", "internal/logs", "internal/namespace", "internal/page", "internal/redact", "internal/server", "internal/top",
			"replay", "rule", "rulefile", "ruletest", "store/durable", "store/memstore", "window",
		},
		theirs: []string{"github.com/schollz/progressbar", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
	},
}

// frontEnd is what the front ends may import: no other front end, and of the
// stores only the contract, for its verbs.
var frontEnd = []string{".", "internal/access", "internal/answer", "internal/namespace", "internal/sizes", "receipt", "rule", "store", "window"}

// grpcModules are what packages that serve gRPC may import.
var grpcModules = []string{
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// testModules are open to every test, and to tests only.
var testModules = []string{
	"github.com/anishathalye/porcupine",
	"github.com/cockroachdb/datadriven",
	"github.com/dunglas/httpsfv",
	"github.com/envoyproxy/go-control-plane/envoy",
	"github.com/goccy/go-yaml",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema",
	"go.opentelemetry.io/proto/otlp",
	"go.uber.org/goleak",
	"google.golang.org/protobuf",
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
	"pgregory.net/rapid",
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

// refuses says why a may not import a package, or nothing when it may. A test
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

// within says whether a package is one of, or below one of, the paths.
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

// goFiles are the module's Go files, by slash-separated paths from its root.
// Other modules below it, such as the benchmarks, have arrows of their own.
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
		if name == "." {
			return nil
		}
		base := entry.Name()
		_, err = os.Stat(filepath.Join(name, "go.mod"))
		if err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("got no Go files, want the module's")
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
