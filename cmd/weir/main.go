// Command weir serves rules over HTTP, checks rules files, replays logs through
// them, and calls a running service.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/fault"
)

// Exit statuses.
const (
	exitError  = 1 // the command failed
	exitUsage  = 2 // the command line is invalid
	exitDenied = 3 // the action was denied, or nothing was held any more
)

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "ratelimit" && len(args) == 0 {
		args = asRatelimit()
	}
	os.Exit(run(args, os.Stdin, os.Stdout, os.Stderr))
}

// asRatelimit returns the command line for a program that is started in the place of
// envoyproxy/ratelimit's, by its name: it reads the same environment, and listens on all interfaces
// without authentication, too. The admin address stays on loopback.
func asRatelimit() []string {
	for _, host := range []string{"HOST", "GRPC_HOST"} {
		if os.Getenv(host) == "" {
			_ = os.Setenv(host, "0.0.0.0") // no error for this name
		}
	}
	return []string{"serve", "--envoy-env", "--insecure=http,grpc,metrics"}
}

// run executes the command line in args and returns the exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	sayTopics(root)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // cobra's error repeats what is no command
		args = append([]string{withoutPassword(args[0])}, args[1:]...)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	// Errors before a command begins are from cobra's checks of the command line.
	began := false
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		began = true
		warnOfVariables(cmd, os.Environ(), inColour(cmd, errs))
	}

	cmd, err := root.ExecuteC()
	errs = inColour(cmd, errs)
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDenied), errors.Is(err, errNotHeld):
		return exitDenied
	case !began || errors.As(err, &wrong):
		fmt.Fprintf(errs, "%s\nsee: %s --help\n", message(err), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(errs, message(err))
	return exitError
}

// withoutPassword returns an argument for an error. Of a URL, which may have a password
// and be spelled wrong, only the scheme is left.
func withoutPassword(arg string) string {
	if scheme, _, isURL := strings.Cut(arg, "://"); isURL {
		return scheme + "://…"
	}
	return arg
}

// message returns the text of err with the prefix "weir: ", which errors of the library already
// have.
func message(err error) string {
	return "weir: " + strings.TrimPrefix(err.Error(), "weir: ")
}

// errDenied sets the exit status of a denied action. The answer is already
// printed.
var errDenied = errors.New("denied")

// usageError is an invalid command line.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Count what happens, and decide whether it may happen again",
		Long: `weir counts how often something happens, per key and over a window, and decides
whether it may happen again.

Exit status: 0 success or allowed, 1 error, 2 invalid command line, 3 denied.`,
		Example: `  weir serve                               # run the service with a demo rule
  weir init rules.yaml                     # write rules to start from
  weir check rules.yaml                    # print every error and warning in them
  weir test rules_test.yaml                # test that they decide as expected
  weir serve --rules rules.yaml            # run the service with them
  weir take action=post user=42            # ask the service for a decision
  weir replay --rules rules.yaml access.log.gz`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddGroup(
		&cobra.Group{ID: "service", Title: "Service and rules:"},
		&cobra.Group{ID: "client", Title: "Calls to a running service:"},
	)
	for _, c := range []*cobra.Command{newServe(), newCheck(), newFmt(), newTest(), newImport(), newInit(), newSchema(), newReplay(), newCompare(), newSuggest(), newInspect(), newDoctor(), newData(), newToken()} {
		c.GroupID = "service"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{newTake(), newRecord(), newRefund(), newSettle(), newCancel(), newRenew(), newExplain(), newUsage(), newForget(), newSet(), newUnban(), newOverride(), newAudit(), newDenials(), newExport(), newTop(), newEvents()} {
		c.GroupID = "client"
		root.AddCommand(c)
	}
	root.AddCommand(newVersion(), newTrialWorker())
	root.PersistentFlags().Bool("no-color", false, "print no colours; the variable NO_COLOR does the same (colours are for terminals only)")
	addMan(root)
	sayArguments(root)
	return root
}

// sayArguments has the errors of cmd and of the commands below it name the argument that is
// missing or too many, and the usage, or the command that is unknown.
func sayArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		sayArguments(c)
	}
	if cmd.HasSubCommands() {
		if cmd.HasParent() {
			sayCommands(cmd)
		}
		return
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if wrong := (*usageError)(nil); err == nil || errors.As(err, &wrong) {
			return err
		}
		needed := slices.DeleteFunc(strings.Fields(cmd.Use)[1:], func(word string) bool { return strings.HasPrefix(word, "[") })
		problem := "too many arguments"
		if len(args) < len(needed) {
			problem = strings.TrimSuffix(needed[len(args)], "…") + " is missing"
		}
		return &usageError{fmt.Sprintf("%s: usage: %s %s", problem, cmd.Parent().CommandPath(), cmd.Use)}
	}
}

// sayCommands makes an unknown command below cmd an error. By itself, cobra prints the help, with the status 0.
func sayCommands(cmd *cobra.Command) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
}

// sayTopics makes an unknown command after weir help an error. By itself, cobra prints the help, with the status 0.
func sayTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // which was just added
	help.Args = func(_ *cobra.Command, args []string) error {
		if of, rest, _ := root.Find(args); len(rest) > 0 {
			return unknownCommand(of, rest[0])
		}
		return nil
	}
}

// unknownCommand returns the error of a command below cmd that there is not.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return &usageError{fmt.Sprintf("unknown command %q for %q%s", withoutPassword(name), cmd.CommandPath(), fault.DidYouMean(name, names))}
}

// flagError names the flag that is meant, or the only command that has it, and what a number is, where pflag names neither.
func flagError(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint := fault.DidYouMean("--"+unknown.GetSpecifiedName(), names)
		var having []string
		for _, c := range cmd.Root().Commands() {
			if c.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
				having = append(having, c.CommandPath())
			}
		}
		if hint == "" && len(having) == 1 {
			hint = ": it is one of " + having[0]
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	if wrong, number := (*pflag.InvalidValueError)(nil), (*strconv.NumError)(nil); errors.As(err, &wrong) && errors.As(err, &number) {
		return fmt.Errorf("invalid argument %q for \"--%s\" flag: want numbers", wrong.GetValue(), wrong.GetFlag().Name)
	}
	return err
}
