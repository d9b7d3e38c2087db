// Command weir serves rules over HTTP, checks and replays them, and asks a
// running service.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// What weir exits with.
const (
	exitError  = 1 // it could not be done
	exitUsage  = 2 // it was asked for in the wrong way
	exitDenied = 3 // it was asked and answered: denied
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program, but for the process around it.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	// Cobra looks at flags and arguments before a command runs.
	began := false
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }

	cmd, err := root.ExecuteC()
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDenied):
		return exitDenied
	case !began || errors.As(err, &wrong):
		fmt.Fprintf(errs, "%s\nsee: %s --help\n", message(err), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(errs, message(err))
	return exitError
}

// message returns the text of err with "weir: " in front, once: errors of the
// library start with it.
func message(err error) string { return "weir: " + strings.TrimPrefix(err.Error(), "weir: ") }

// errDenied ends a command whose answer, already printed, is no.
var errDenied = errors.New("denied")

// usageError is an argument that cannot be meant.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Count what happens, and decide whether it may happen again",
		Long: `weir counts how often something happens, per key and over a window, and decides
whether it may happen again.

Exit status: 0 done, or allowed; 1 error; 2 wrong usage; 3 denied.`,
		Example: `  weir serve                               # a demo, at once
  weir init rules.yaml                     # rules to start from
  weir check rules.yaml                    # every fault in them
  weir serve --rules rules.yaml            # the service
  weir take action=post user=42            # ask it
  weir replay --rules rules.yaml access.log.gz`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddGroup(
		&cobra.Group{ID: "service", Title: "Service and rules:"},
		&cobra.Group{ID: "client", Title: "Asking a running service:"},
	)
	for _, c := range []*cobra.Command{newServe(), newCheck(), newImport(), newInit(), newSchema(), newReplay(), newInspect()} {
		c.GroupID = "service"
		root.AddCommand(c)
	}
	for _, c := range append(newVerbs(), newExplain(), newUsage(), newForget()) {
		c.GroupID = "client"
		root.AddCommand(c)
	}
	root.AddCommand(newVersion())
	return root
}
