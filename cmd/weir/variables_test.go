package main

import (
	"regexp"
	"strings"
	"testing"
)

// A misspelt variable is named, with the one that is meant. Those of other programs are named only by weir serve, which
// would otherwise start with its defaults, and those that Kubernetes sets for a service called weir by no command.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	environ := []string{
		"WEIR_TOKNE=t", "WEIR_LISTN=:8080", "WEIR_ADDRESS=weir:8080", "WEIR_RULE=", "WEIR_URL=http://weir:8080", "PATH=/bin",
		"WEIR_SERVICE_HOST=10.0.0.1", "WEIR_SERVICE_PORT_HTTP=8080", "WEIR_PORT=tcp://10.0.0.1:8080", "WEIR_PORT_8080_TCP_ADDR=10.0.0.1",
		"WEIR_CANARY_SERVICE_HOST=10.0.0.2", "WEIR_CANARY_PORT=tcp://10.0.0.2:8080",
	}
	// All that the manual names are known.
	for _, name := range regexp.MustCompile(`WEIR_\w+`).FindAllString(readFile(t, "../../docs/reference/flags.md"), -1) {
		environ = append(environ, name+"=x")
	}
	misspelt := `warning: WEIR_ADDRESS: no command reads this variable: did you mean "WEIR_ADDR"?
warning: WEIR_LISTN: no command reads this variable: did you mean "WEIR_LISTEN"?
warning: WEIR_TOKNE: no command reads this variable: did you mean "WEIR_TOKEN"?
`
	for name, want := range map[string]string{"take": misspelt, "serve": misspelt + "warning: WEIR_URL: no command reads this variable\n"} {
		cmd, _, err := newRoot().Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if warnOfVariables(cmd, environ, &got); got.String() != want {
			t.Errorf("weir %s: got\n%swant\n%s", name, got.String(), want)
		}
	}
}
