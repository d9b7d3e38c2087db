package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rehearse prepares a release and uses its modules as their users will: in empty folders,
// with a separate module cache, from a file proxy.
func rehearse(tmp, version string) error {
	start := time.Now()
	r, err := prepare(filepath.Join(tmp, "weir"), tmp, version)
	if err != nil {
		return err
	}
	fmt.Printf("%5.1fs  %s of %d modules: tidied, committed, tagged and published\n", time.Since(start).Seconds(), version, len(r.modules))
	u := &users{release: r}
	if err := u.forgetOurs(); err != nil {
		return err
	}
	type check struct {
		what string
		do   func() error
	}
	checks := []check{
		{"no module has a file of more than 1 MB", u.isSmall},
		{"every module loads from the tagged commit without go.work", u.loadsTagged},
		{"go get " + root + " adds one line to go.mod and no other module to go.sum; its program runs", u.getsRoot},
		{"go get " + root + " raises no version of gRPC, client_golang, x/net and protobuf", u.raisesNothing},
		{"store/redisstore " + version + " builds with the library of the next version", u.mixes},
		{"go install " + root + "/cmd/weir: the program says its version, and notices names all that it contains", u.installs},
	}
	for _, m := range r.modules {
		if m.path != root && m.path != root+"/cmd/weir" && !strings.HasPrefix(m.dir, "internal/") {
			checks = append(checks, check{"go get " + m.path + " by itself: its program builds", func() error { return u.getsAlone(m) }})
		}
	}
	for _, c := range checks {
		start := time.Now()
		if err := c.do(); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		fmt.Printf("%5.1fs  %s\n", time.Since(start).Seconds(), c.what)
	}
	return nil
}

// users are the users of a release.
type users struct {
	*release
	n int
}

// forgetOurs removes the repository's modules from the module cache in which they were
// tidied, so that users download them. What others have made stays there.
func (u *users) forgetOurs() error {
	return errors.Join(
		os.RemoveAll(filepath.Join(u.tidyCache(), "github.com", "weirhq")),
		os.RemoveAll(filepath.Join(u.tidyCache(), "cache", "download", "github.com", "weirhq")))
}

// program is one user's program, in a separate folder.
type program struct {
	*users
	dir string
}

// program makes a module with one file.
func (u *users) program(source string) (*program, error) {
	u.n++
	p := &program{u, filepath.Join(u.tmp, fmt.Sprint("user", u.n))}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return nil, err
	}
	if err := p.write(source); err != nil {
		return nil, err
	}
	_, err := p.goes("mod", "init", "example.com/program")
	return p, err
}

func (p *program) write(source string) error {
	return os.WriteFile(filepath.Join(p.dir, "main.go"), []byte(source), 0o644)
}

func (p *program) read(file string) string {
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return string(text)
}

// goes runs the go command. With -trimpath the next rehearsal reuses the build cache, although the module cache
// is new. With gin's tag nomsgpack its users do not compile a codec that takes a minute.
func (p *program) goes(args ...string) (string, error) {
	return output(p.dir, p.env(), "go", args...)
}

func (u *users) env() []string {
	return u.proxyEnv("GOBIN="+filepath.Join(u.tmp, "bin"), "GOFLAGS=-modcacherw -trimpath -tags=nomsgpack")
}

// isSmall looks for large files in what users download: a program that was committed by
// mistake is one.
func (u *users) isSmall() error {
	for _, m := range u.modules {
		z, err := zip.OpenReader(filepath.Join(u.cache, "cache", "download", m.path, "@v", u.version+".zip"))
		if err != nil {
			return err
		}
		for _, f := range z.File {
			if f.UncompressedSize64 > 1_000_000 {
				err = errors.Join(err, fmt.Errorf("%s has %d bytes", f.Name, f.UncompressedSize64))
			}
		}
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
	}
	return nil
}

// loadsTagged loads the packages and tests of each module from the clone. It needs every
// sum of go.sum.
func (u *users) loadsTagged() error {
	for _, m := range u.modules {
		if _, err := output(filepath.Join(u.dir, m.dir), u.env(), "go", "list", "-deps", "-test", "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

const slidingProgram = `package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

func main() {
	posts := weir.MustLimiter(weir.Sliding(1, time.Hour))
	for range 2 {
		r, err := posts.Allow(context.Background(), "user:42")
		fmt.Println(r.Allowed, err)
	}
}
`

func (u *users) getsRoot() error {
	p, err := u.program(slidingProgram)
	if err != nil {
		return err
	}
	before := p.read("go.mod")
	if _, err := p.goes("get", root+"@"+u.version); err != nil {
		return err
	}
	if _, err := p.goes("mod", "tidy"); err != nil {
		return err
	}
	if got, want := p.read("go.mod"), before+"\nrequire "+root+" "+u.version+"\n"; got != want {
		return fmt.Errorf("got go.mod\n%s\nwant\n%s", got, want)
	}
	sums := strings.Split(strings.TrimSpace(p.read("go.sum")), "\n")
	if len(sums) != 2 || !strings.HasPrefix(sums[0], root+" ") || !strings.HasPrefix(sums[1], root+" ") {
		return fmt.Errorf("got go.sum\n%s\nwant the two lines of %s", strings.Join(sums, "\n"), root)
	}
	printed, err := p.goes("run", ".")
	if want := "true <nil>\nfalse <nil>"; err == nil && printed != want {
		err = fmt.Errorf("the program prints %q, want %q", printed, want)
	}
	return err
}

const neighbours = `package main

import (
	_ "github.com/prometheus/client_golang/prometheus"
	_ "golang.org/x/net/http2"
	_ "google.golang.org/grpc"
	_ "google.golang.org/protobuf/proto"
)

func main() {}
`

func (u *users) raisesNothing() error {
	p, err := u.program(neighbours)
	if err != nil {
		return err
	}
	if _, err := p.goes("get", "google.golang.org/grpc@v1.75.0", "github.com/prometheus/client_golang@v1.22.0",
		"golang.org/x/net@v0.41.0", "google.golang.org/protobuf@v1.36.6"); err != nil {
		return err
	}
	if _, err := p.goes("mod", "tidy"); err != nil {
		return err
	}
	before, err := p.goes("list", "-m", "all")
	if err != nil {
		return err
	}
	if err := p.write(strings.Replace(neighbours, "import (", "import (\n\t_ \""+root+"\"", 1)); err != nil {
		return err
	}
	if _, err := p.goes("get", root+"@"+u.version); err != nil {
		return err
	}
	if _, err := p.goes("mod", "tidy"); err != nil {
		return err
	}
	after, err := p.goes("list", "-m", "all")
	if got := strings.Replace(after, root+" "+u.version+"\n", "", 1); err == nil && got != before {
		err = fmt.Errorf("got the modules\n%s\nwant\n%s", got, before)
	}
	return err
}

// mixes publishes the tree as the next version of the library, and uses it with the
// store of this version.
func (u *users) mixes() error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(u.version, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return err
	}
	next := fmt.Sprintf("v%d.%d.%d-rehearsal", major, minor, patch+1)
	library := &module{path: root, dir: "."}
	if _, err := u.git("tag", "-f", library.tag(next)); err != nil {
		return err
	}
	if _, err := u.download(u.cache, next, library); err != nil {
		return err
	}
	p, err := u.program(importing(root + "/store/redisstore"))
	if err != nil {
		return err
	}
	if _, err := p.goes("get", root+"/store/redisstore@"+u.version, root+"@"+next); err != nil {
		return err
	}
	if mod := p.read("go.mod"); !strings.Contains(mod, root+" "+next) || !strings.Contains(mod, root+"/store/redisstore "+u.version) {
		return fmt.Errorf("got go.mod\n%s", mod)
	}
	_, err = p.goes("build", "-o", "/dev/null", ".")
	return err
}

func (u *users) installs() error {
	if _, err := output(u.tmp, u.env(), "go", "install", root+"/cmd/weir@"+u.version); err != nil {
		return err
	}
	program := filepath.Join(u.tmp, "bin", "weir")
	printed, err := output(u.tmp, nil, program, "version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(printed, "weir "+u.version+",") {
		return fmt.Errorf("weir version prints %q, want %s", printed, u.version)
	}
	notices := filepath.Join(u.tmp, "notices")
	if _, err := output(u.dir, nil, "go", "run", "./scripts/notices", notices); err != nil {
		return err
	}
	_, err = output(u.dir, nil, "go", "run", "./scripts/notices", "-check", notices, program)
	return err
}

func (u *users) getsAlone(m *module) error {
	p, err := u.program(importing(m.path))
	if err != nil {
		return err
	}
	if _, err := p.goes("get", m.path+"@"+u.version); err != nil {
		return err
	}
	_, err = p.goes("build", "-o", "/dev/null", ".")
	return err
}

// importing returns a program that imports a package.
func importing(path string) string {
	return "package main\n\nimport _ \"" + path + "\"\n\nfunc main() {}\n"
}
