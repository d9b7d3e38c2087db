// Command release prepares and rehearses releases, and tidies the modules of the
// repository:
//
//	release tidy                  # write go.mod and go.sum of every released module
//	release fresh                 # fail if tidy would change one
//	release prepare v0.1.0 DIR    # clone HEAD to DIR, with the commit and the tags of the release
//	release rehearse [v0.1.0]     # prepare, and use the modules of it as their users will
//
// The released modules require each other at the version that is released, which is
// published nowhere while the release is made. So each step works in a clone: the
// modules are taken in the order of their requirements, and each one is tidied,
// committed and tagged, and then downloaded from the clone by the go command itself. Its
// module cache is the file proxy from which the next modules get it. The zip files and
// their sums are therefore the ones that every module proxy will make from the tags.
//
// On the main branch go.sum has no sums of these modules. They are written into the
// commit that is tagged, which is on no branch.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const root = "github.com/weirhq/weir"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	tmp, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		_ = os.RemoveAll(tmp)
		os.Exit(1)
	}()
	switch {
	case len(args) == 1 && args[0] == "tidy":
		return tidy(tmp, true)
	case len(args) == 1 && args[0] == "fresh":
		return tidy(tmp, false)
	case len(args) == 3 && args[0] == "prepare":
		if err := releasable(args[1]); err != nil {
			return err
		}
		_, err := prepare(args[2], tmp, args[1])
		return err
	case len(args) == 1 && args[0] == "rehearse":
		version, err := required()
		if err != nil {
			return err
		}
		return rehearse(tmp, version)
	case len(args) == 2 && args[0] == "rehearse":
		return rehearse(tmp, args[1])
	}
	return errors.New("usage: release tidy | fresh | prepare VERSION DIR | rehearse [VERSION]")
}

// tidy tidies a copy of the working tree, changes that are not committed included. It
// writes what differs to the working tree, or fails and prints it.
func tidy(tmp string, write bool) error {
	r, err := clone(filepath.Join(tmp, "weir"), tmp)
	if err != nil {
		return err
	}
	if err := r.copyWorkingTree(); err != nil {
		return err
	}
	version, err := required()
	if err != nil {
		return err
	}
	if err := r.release(version); err != nil {
		return err
	}
	stale := false
	for _, m := range r.modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			file := filepath.Join(m.dir, name)
			want, err := os.ReadFile(filepath.Join(r.dir, file))
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			have, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			want = withoutOurs(want)
			if bytes.Equal(want, have) {
				continue
			}
			if write {
				if err := os.WriteFile(file, want, 0o644); err != nil {
					return err
				}
				fmt.Println("wrote", file)
				continue
			}
			stale = true
			diff := exec.Command("diff", "-u", "--label", file, "--label", "tidy/"+file, file, "-")
			diff.Stdin, diff.Stdout, diff.Stderr = bytes.NewReader(want), os.Stdout, os.Stderr
			_ = diff.Run() // exit status 1: they differ
		}
	}
	if stale {
		return errors.New("modules are not tidy: make tidy")
	}
	return nil
}

// required returns the version at which the modules of the working tree require each
// other.
func required() (string, error) {
	work, err := os.ReadFile("go.work")
	if err != nil {
		return "", err
	}
	found := replaced.FindSubmatch(work)
	if found == nil {
		return "", errors.New("go.work replaces no version of " + root)
	}
	return string(found[2]), nil
}

// releasable reports why the working tree cannot be released as version, if it cannot.
func releasable(version string) error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return fmt.Errorf("version %q: want one such as v0.1.0", version)
	}
	if changed, err := output(".", nil, "git", "status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(err, errors.New("the working tree has changes that are not committed:\n"+changed))
	}
	tags, err := output(".", nil, "git", "tag", "--list", version, "*/"+version)
	if err != nil || tags != "" {
		return errors.Join(err, fmt.Errorf("%s exists: tags %s", version, strings.Join(strings.Fields(tags), " ")))
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err == nil && !section(version).Match(changes) {
		err = fmt.Errorf("CHANGELOG.md has no section ## [%s]", version[1:])
	}
	return err
}

// section matches the heading of a version in the changelog.
func section(version string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(## \[` + regexp.QuoteMeta(version[1:]) + `\])(?: - .*)?$`)
}

// prepare makes the release in a clone of HEAD in dir.
func prepare(dir, tmp, version string) (*release, error) {
	r, err := clone(dir, tmp)
	if err != nil {
		return nil, err
	}
	if err := r.date(version); err != nil {
		return nil, err
	}
	if err := r.release(version); err != nil {
		return nil, err
	}
	if err := r.verify(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *release) git(args ...string) (string, error) {
	return output(r.dir, nil, "git", append([]string{"--git-dir=" + filepath.Join(r.dir, ".git")}, args...)...)
}

// output runs a program, and returns what it prints, without the newline at its end.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "GIT_CONFIG_") || strings.HasPrefix(v, "GIT_SSL_") {
			cmd.Env = append(cmd.Env, v) // a hook of git has variables that name the repository
		}
	}
	cmd.Env = append(cmd.Env, env...)
	var out, faults bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &faults
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), faults.String())
	}
	return strings.TrimRight(out.String(), "\n"), nil
}
