package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// module is a module of the repository.
type module struct {
	path, dir string
	needs     []string // modules of the repository that it requires
	sum       string   // of its zip file and its go.mod
}

// tag returns the tag that names a version of the module.
func (m *module) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// release is a release, made in a clone.
type release struct {
	dir, source, tmp string
	cache            string // module cache with what was published
	proxy            string // the usual GOPROXY
	version          string
	modules          []*module // those that are released, each after those that it requires
	others           []*module // benchmarks, tests of manifests
}

// clone clones HEAD of the repository in the working directory to dir.
func clone(dir, tmp string) (*release, error) {
	source, err := output(".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(source); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	r := &release{dir: dir, source: source, tmp: tmp, cache: filepath.Join(tmp, "published")}
	if _, err := output(".", nil, "git", "clone", "-q", "--shared", "-c", "advice.detachedHead=false", source, dir); err != nil {
		return nil, err
	}
	for key, fallback := range map[string]string{"user.name": "weir", "user.email": "weir@localhost"} {
		value, err := output(".", nil, "git", "config", key)
		if err != nil {
			value = fallback
		}
		if _, err := r.git("config", key, value); err != nil {
			return nil, err
		}
	}
	if _, err := r.git("checkout", "-q", "--detach"); err != nil {
		return nil, err
	}
	if err := r.makeTidyCache(); err != nil {
		return nil, err
	}
	return r, nil
}

// copyWorkingTree commits the files of the working tree to the clone.
func (r *release) copyWorkingTree() error {
	if _, err := r.git("--work-tree="+r.source, "add", "-A"); err != nil {
		return err
	}
	if _, err := r.git("commit", "-q", "--allow-empty", "-m", "the working tree"); err != nil {
		return err
	}
	_, err := r.git("reset", "-q", "--hard")
	return err
}

// date writes today's date after the version in the changelog.
func (r *release) date(version string) error {
	file := filepath.Join(r.dir, "CHANGELOG.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text = section(version).ReplaceAll(text, []byte("$1 - "+time.Now().UTC().Format(time.DateOnly)))
	return os.WriteFile(file, text, 0o644)
}

// release commits and tags version of all modules.
func (r *release) release(version string) error {
	r.version = version
	if err := r.findModules(); err != nil {
		return err
	}
	if err := r.setVersions(); err != nil {
		return err
	}
	if _, err := r.git("commit", "-q", "--allow-empty", "-a", "-m", "release "+version); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.tidyModule(m); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if _, err := r.git("add", "-A"); err != nil {
			return err
		}
		if _, err := r.git("commit", "-q", "--amend", "--allow-empty", "--no-edit"); err != nil {
			return err
		}
		if _, err := r.git("tag", "-f", m.tag(version)); err != nil {
			return err
		}
		sums, err := r.download(r.cache, version, m)
		if err != nil {
			return err
		}
		m.sum = sums[0]
	}
	for _, m := range r.modules {
		if _, err := r.git("tag", "-f", m.tag(version)); err != nil {
			return err
		}
	}
	return nil
}

// findModules finds the modules of the repository and sorts those that are released.
func (r *release) findModules() error {
	files, err := r.git("ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	var left []*module
	for _, file := range strings.Fields(files) {
		text, err := output(r.dir, nil, "go", "mod", "edit", "-json", file)
		if err != nil {
			return err
		}
		var mod struct {
			Module  struct{ Path string }
			Require []struct{ Path string }
		}
		if err := json.Unmarshal([]byte(text), &mod); err != nil {
			return err
		}
		m := &module{path: mod.Module.Path, dir: filepath.Dir(file)}
		for _, q := range mod.Require {
			if ours(q.Path) {
				m.needs = append(m.needs, q.Path)
			}
		}
		if top, _, _ := strings.Cut(file, "/"); top == "benchmarks" || top == "deploy" {
			r.others = append(r.others, m)
		} else {
			left = append(left, m)
		}
	}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(m *module) bool {
			return !slices.ContainsFunc(left, func(other *module) bool { return slices.Contains(m.needs, other.path) })
		})
		if i < 0 {
			return errors.New("modules require each other in a circle")
		}
		r.modules = append(r.modules, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return nil
}

func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

var replaced = regexp.MustCompile(`(?m)^(\s*` + regexp.QuoteMeta(root) + `\S*) (v\S+) =>`)

// setVersions writes the version of the release to every go.mod and go.work.
func (r *release) setVersions() error {
	for _, m := range slices.Concat(r.modules, r.others) {
		args := []string{"mod", "edit"}
		for _, path := range m.needs {
			args = append(args, "-require="+path+"@"+r.version)
		}
		if len(m.needs) == 0 {
			continue
		}
		if _, err := output(filepath.Join(r.dir, m.dir), nil, "go", args...); err != nil {
			return err
		}
	}
	files, err := r.git("ls-files", "go.work", "*/go.work")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(files) {
		file = filepath.Join(r.dir, file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = replaced.ReplaceAll(text, []byte("$1 "+r.version+" =>"))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tidyModule runs go mod tidy with the modules that are published already.
func (r *release) tidyModule(m *module) error {
	dir := filepath.Join(r.dir, m.dir)
	sums := filepath.Join(dir, "go.sum")
	if text, err := os.ReadFile(sums); err == nil {
		if err := os.WriteFile(sums, withoutOurs(text), 0o644); err != nil {
			return err
		}
	}
	_, err := output(dir, r.proxyEnv("GOFLAGS=-mod=mod -modcacherw"), "go", "mod", "tidy")
	return err
}

// tidyCache returns the path of a module cache for go commands that get the released modules.
func (r *release) tidyCache() string { return filepath.Join(r.tmp, "modules") }

// withoutOurs returns a go.sum without the sums of the repository's modules. A go.mod
// has no such lines.
func withoutOurs(sums []byte) []byte {
	return regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(root)+`[/ ].*\n`).ReplaceAll(sums, nil)
}

// proxyEnv returns the environment for a go command that gets the released modules from
// what was published, and others from the usual proxy.
func (r *release) proxyEnv(more ...string) []string {
	return append([]string{
		"GOPROXY=file://" + r.cache + "/cache/download," + r.proxy, "GONOSUMDB=" + root, "GOWORK=off", "GOMODCACHE=" + r.tidyCache(),
	}, more...)
}

// makeTidyCache makes a module cache that links to other projects' modules in the user's cache, so that nothing
// is downloaded and unpacked twice, and that has none of weir's modules.
func (r *release) makeTidyCache() error {
	usual, err := output(".", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	var cache string
	cache, r.proxy, _ = strings.Cut(usual, "\n")
	for _, dir := range []string{".", "github.com", "cache/download", "cache/download/github.com"} {
		if err := os.MkdirAll(filepath.Join(r.tidyCache(), dir), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(cache, dir))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, e := range entries {
			if slices.Contains([]string{"cache", "github.com", "weirhq"}, e.Name()) {
				continue
			}
			if err := os.Symlink(filepath.Join(cache, dir, e.Name()), filepath.Join(r.tidyCache(), dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// download makes the go command download modules from their tags in the clone to a module cache. It returns
// their sums.
func (r *release) download(cache, version string, modules ...*module) ([]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.path+"@"+version)
	}
	text, err := output(os.TempDir(), []string{
		"GOMODCACHE=" + cache, "GOFLAGS=-modcacherw", "GOWORK=off", "GOPROXY=direct", "GONOSUMDB=" + root, "GOVCS=*:git",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + root,
	}, "go", args...)
	if err != nil {
		return nil, err
	}
	var sums []string
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var got struct{ Sum, GoModSum string }
		if err := dec.Decode(&got); err != nil {
			return nil, err
		}
		sums = append(sums, got.Sum+" "+got.GoModSum)
	}
	return sums, nil
}

// verify publishes all modules again, from the tags as they are now, and compares the
// sums with those that the modules' go.sum were written for.
func (r *release) verify() error {
	r.cache += "-verified"
	sums, err := r.download(r.cache, r.version, r.modules...)
	if err != nil {
		return err
	}
	for i, m := range r.modules {
		if sums[i] != m.sum {
			return fmt.Errorf("%s: got the sum %s from the tag, want %s", m.path, sums[i], m.sum)
		}
	}
	return nil
}
