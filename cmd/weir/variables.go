package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/fault"
)

// variableOf returns the name of the environment variable of a flag of weir serve.
func variableOf(f *pflag.Flag) string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// otherVariables are the variables that are read and are not those of flags of weir serve.
var otherVariables = []string{"WEIR_ADDR", "WEIR_CA", "WEIR_LOG_KEYS_SECRET", "WEIR_NAMESPACE", "WEIR_TOKEN"}

// flagsFromEnvironment sets each flag that is not on the command line from its variable.
func flagsFromEnvironment(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := variableOf(f)
		value := os.Getenv(name)
		if value == "" || f.Changed || f.Name == "help" || f.Name == "store" || err != nil { // --store has read its variable
			return
		}
		if wrong := cmd.Flags().Set(f.Name, value); wrong != nil {
			err = &usageError{fmt.Sprintf("%s: %v", name, wrong)}
		}
	})
	return err
}

// warnOfVariables warns of variables in environ whose names begin with WEIR_ and that no command reads. Other
// programs may read them, so commands other than weir serve warn only of those that are nearly called as a known one.
func warnOfVariables(cmd *cobra.Command, environ []string, to io.Writer) {
	known := slices.Clone(otherVariables)
	serve, _, _ := cmd.Root().Find([]string{"serve"}) // there is one
	serve.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, variableOf(f)) })
	for _, line := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "WEIR_") || value == "" || slices.Contains(known, name) || isServiceLink(name, environ) {
			continue
		}
		if hint := fault.DidYouMean(name, known); hint != "" || cmd == serve {
			fmt.Fprintf(to, "warning: %s: no command reads this variable%s\n", name, hint)
		}
	}
}

// isServiceLink reports whether Kubernetes has set the variable for a service, whose name can be weir.
func isServiceLink(name string, environ []string) bool {
	return slices.ContainsFunc(environ, func(line string) bool {
		service, _, found := strings.Cut(line, "_SERVICE_HOST=")
		return found && (strings.HasPrefix(name, service+"_SERVICE_") || strings.HasPrefix(name, service+"_PORT"))
	})
}
