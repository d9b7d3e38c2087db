package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
)

func newTest() *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Test rules: requests at stated times, and the expected decisions",
		Long: `Run test files. A test file, such as posts_test.yaml for posts.yaml, has requests at
stated times and the decisions that its author expects. Time is virtual: a case
that covers a month takes no longer than its requests. For a directory, all files
below it that end in _test.yaml are run.

--generate writes a test file from logs: for each limit of --rules that denies
something, the requests of the key with the most denials, up to the instant of its
first denial, and what the rules decide. The flags for logs are those of weir replay.

weir schema --tests prints the schema of test files for editors. The manual:
https://github.com/weirhq/weir/blob/main/docs/guides/testing-rules.md

Exit status: 0 all cases pass, 1 a case fails, a file has faults or no case matches --run.`,
		Example: `  weir test rules_test.yaml
  weir test --run 'login' --junit report.xml rules/
  weir test --generate --rules rules.yaml access.log > rules_test.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.generate {
				return o.write(cmd, args)
			}
			if o.rules != "" {
				return &usageError{"--rules is for --generate: a test file names its rules file"}
			}
			colour(cmd)
			return o.run(cmd, args)
		},
	}
	o.logs.add(cmd)
	_ = cmd.Flags().MarkHidden("top") // a case has one key
	cmd.Flags().BoolVar(&o.generate, "generate", false, "write a test file from logs")
	cmd.Flags().StringVar(&o.rules, "rules", "", "with --generate: the rules `file`")
	cmd.Flags().StringVar(&o.only, "run", "", "run only the cases whose name matches this regular `expression`")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write the results to `file`, as JUnit XML for continuous integration")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the results as JSON")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print each case")
	return cmd
}

type testOptions struct {
	generate    bool
	rules       string
	logs        logFlags
	only, junit string
	verbose     bool
	json        bool
}

// write writes a test file from the logs in args.
func (o *testOptions) write(cmd *cobra.Command, args []string) error {
	if o.rules == "" {
		return &usageError{"--generate needs --rules FILE"}
	}
	if slices.Contains(args, "-") {
		return &usageError{"--generate reads the logs twice: want files, not -"}
	}
	file, err := rulesOf(cmd, o.rules)
	if err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr())
	source, err := o.logs.read(cmd, args, bar)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	return o.logs.ordered(o.generateFrom(ctx, cmd.OutOrStdout(), file.File, source, replay.WithProgress(bar.show)), len(args))
}

// run runs the test files that args name.
func (o *testOptions) run(cmd *cobra.Command, args []string) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return &usageError{fmt.Sprintf("--run: %v", err)}
	}
	names, err := testFiles(args)
	if err != nil {
		return err
	}
	var suites []suite
	failed, cases := 0, 0
	for _, name := range names {
		s := o.file(cmd, name, only)
		if s.failed() {
			failed++
		}
		cases += len(s.cases)
		suites = append(suites, s)
	}
	if o.json {
		if err := writeTests(cmd.OutOrStdout(), suites); err != nil {
			return err
		}
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, suites); err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %s failed", failed, plural(len(names), "file"))
	case cases == 0 && o.only != "":
		return fmt.Errorf("no case matches --run %q", o.only)
	}
	return nil
}

// suite is the result of a test file.
type suite struct {
	name  string
	err   error // the file has faults
	cases []*ruletest.Case
	times []time.Duration // of each case
	took  time.Duration
}

func (s *suite) failed() bool {
	for _, c := range s.cases {
		if len(c.Failures) > 0 {
			return true
		}
	}
	return s.err != nil
}

// file runs the cases of a file that match only, and prints their failures.
func (o *testOptions) file(cmd *cobra.Command, name string, only *regexp.Regexp) suite {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if o.json {
		out, errs = io.Discard, io.Discard
	}
	s := suite{name: name}
	faulty := func(err error) suite {
		s.err = err
		fmt.Fprintln(errs, err)
		return s
	}
	text, err := files.Rules(name)
	if err != nil {
		return faulty(fmt.Errorf("test file: %w", err))
	}
	tests, err := rulefile.ParseTests(name, text, func(path string) (*rulefile.File, error) {
		file, err := loadRules(path)
		if err != nil {
			return nil, err
		}
		return file.File, nil
	})
	if err != nil {
		return faulty(err)
	}
	all := tests.Cases
	tests.Cases = nil
	for _, c := range all {
		if only.MatchString(c.Name) {
			tests.Cases = append(tests.Cases, c)
		}
	}
	began := time.Now()
	s.err = ruletest.Test(cmd.Context(), tests, func(c *ruletest.Case) {
		s.cases, s.times = append(s.cases, c), append(s.times, time.Since(began)-s.took)
		s.took = time.Since(began)
		for _, f := range c.Failures {
			fmt.Fprintln(errs, clean(f.Error()))
		}
		if o.verbose {
			fmt.Fprintf(out, "%s  %s: %s, %s of virtual time\n", passed(len(c.Failures) == 0), c.Name, plural(c.Requests, "request"), c.Covers)
		}
	})
	s.took = time.Since(began)
	fmt.Fprintf(out, "%s  %s: %s\n", passed(!s.failed()), name, plural(len(s.cases), "case"))
	return s
}

// writeTests writes the output of weir test --json.
func writeTests(w io.Writer, suites []suite) error {
	type result struct {
		Name     string   `json:"name"`
		OK       bool     `json:"ok"`
		Requests int      `json:"requests"`
		Failures []string `json:"failures"`
	}
	type file struct {
		File  string   `json:"file"`
		OK    bool     `json:"ok"`
		Error string   `json:"error,omitempty"`
		Cases []result `json:"cases"`
	}
	files := []file{}
	for i := range suites {
		s := &suites[i]
		f := file{File: s.name, OK: !s.failed(), Cases: []result{}}
		if s.err != nil {
			f.Error = s.err.Error()
		}
		for _, c := range s.cases {
			r := result{Name: c.Name, OK: len(c.Failures) == 0, Requests: c.Requests, Failures: []string{}}
			for _, failure := range c.Failures {
				r.Failures = append(r.Failures, failure.Error())
			}
			f.Cases = append(f.Cases, r)
		}
		files = append(files, f)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"files": files})
}

func passed(ok bool) string {
	if ok {
		return "ok  "
	}
	return "FAIL"
}

// testFiles returns the test files that args name. A directory stands for the
// files below it that end in _test.yaml.
func testFiles(args []string) (names []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			names = append(names, arg)
			continue
		}
		found := len(names)
		err = filepath.WalkDir(arg, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(name, "_test.yaml") {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(names) == found {
			return nil, fmt.Errorf("%s: no file below it ends in _test.yaml", arg)
		}
	}
	return names, nil
}
