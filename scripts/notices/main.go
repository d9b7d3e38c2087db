// Command notices writes the licences of all software that the program weir contains:
// those of the modules that it links, of the standard library, and of files that it
// embeds. Nearly all of these licences ask for it where a program is given to others.
//
//	go run ./scripts/notices FILE [GOOS/GOARCH…]    # by default for this system
//	go run ./scripts/notices -check FILE PROGRAM…   # fail if a module of a program is missing
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const root = "github.com/weirhq/weir"

func main() {
	check := flag.Bool("check", false, "compare a file with the programs that it belongs to")
	flag.Parse()
	var err error
	switch {
	case *check && flag.NArg() >= 2:
		err = compare(flag.Arg(0), flag.Args()[1:])
	case !*check && flag.NArg() >= 1:
		err = write(flag.Arg(0), flag.Args()[1:])
	default:
		err = errors.New("usage: notices FILE [GOOS/GOARCH…] | notices -check FILE PROGRAM…")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// pkg is a package that the program links, as go list prints it.
type pkg struct {
	Dir        string
	Standard   bool
	EmbedFiles []string
	Module     struct{ Path, Version, Dir string }
}

// source returns what the notices call the origin of a package, and its top folder.
func (p *pkg) source() (name, dir string) {
	if ours(p.Module.Path) {
		return p.Module.Path, p.Module.Dir
	}
	return p.Module.Path + " " + p.Module.Version, p.Module.Dir
}

func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// write writes the notices of the program on some systems to a file.
func write(file string, systems []string) error {
	if len(systems) == 0 {
		systems = []string{os.Getenv("GOOS") + "/" + os.Getenv("GOARCH")} // empty: this system's
	}
	// The texts of the licences, each with the files that have it.
	texts := map[string]map[string]bool{}
	add := func(name, file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		key := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
		if texts[key] == nil {
			texts[key] = map[string]bool{}
		}
		texts[key][name] = true
		return nil
	}
	goroot, err := output("", "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	standard := filepath.Join(strings.TrimSpace(goroot), "LICENSE")
	if err := add(standardLibrary(runtime.Version())+": LICENSE", standard); err != nil {
		return err
	}
	for _, system := range systems {
		packages, err := list(system)
		if err != nil {
			return err
		}
		for _, p := range packages {
			if p.Standard {
				continue
			}
			name, top := p.source()
			files, err := licences(&p)
			if err != nil {
				return err
			}
			for _, f := range files {
				rel, err := filepath.Rel(top, f)
				if err != nil {
					return err
				}
				if err := add(name+": "+filepath.ToSlash(rel), f); err != nil {
					return err
				}
			}
		}
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, "The program weir contains the following software. Each text below applies to what is\nnamed above it.")
	type notice struct{ names, text string }
	var all []notice
	for text, names := range texts {
		all = append(all, notice{strings.Join(slices.Sorted(maps.Keys(names)), "\n"), text})
	}
	slices.SortFunc(all, func(a, b notice) int { return strings.Compare(a.names, b.names) })
	for _, n := range all {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), n.names, n.text)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func standardLibrary(version string) string { return "Go " + strings.TrimPrefix(version, "go") }

// list returns the packages that the program links on a system.
func list(system string) ([]pkg, error) {
	goos, goarch, _ := strings.Cut(system, "/")
	text, err := output("CGO_ENABLED=0 GOOS="+goos+" GOARCH="+goarch,
		"go", "list", "-deps", "-tags=timetzdata", "-json=Dir,Standard,EmbedFiles,Module", "./cmd/weir")
	if err != nil {
		return nil, err
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

var named = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|patents|unlicense)([-.].*)?$`)

// licences returns the files that license a package: those in its folder and in the
// folders around it, to the top of its module. For a package of this repository, which
// has the licence of the program, they are those of the folders of embedded files.
func licences(p *pkg) ([]string, error) {
	name, top := p.source()
	dirs := map[string]bool{}
	if ours(p.Module.Path) {
		for _, f := range p.EmbedFiles {
			if dir := filepath.Dir(f); dir != "." {
				dirs[filepath.Join(p.Dir, dir)] = true
			}
		}
	} else {
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			dirs[dir] = true
			if dir == top || dir == filepath.Dir(dir) {
				break
			}
		}
	}
	var files []string
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() && named.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(files) == 0 && !ours(p.Module.Path) {
		return nil, fmt.Errorf("%s: no licence found for %s", name, p.Dir)
	}
	return files, nil
}

// compare reports modules that programs link and that a file of notices lacks.
func compare(file string, programs []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var missing []error
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		want := []string{standardLibrary(info.GoVersion)}
		for _, m := range info.Deps {
			if !ours(m.Path) {
				want = append(want, m.Path+" "+m.Version)
			}
		}
		for _, name := range want {
			if !bytes.Contains(text, []byte("\n"+name+": ")) {
				missing = append(missing, fmt.Errorf("%s: no notice for %s, which %s contains", file, name, program))
			}
		}
	}
	return errors.Join(missing...)
}

// output returns what a program prints, with variables added to its environment.
func output(env, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), strings.Fields(env)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), err
}
