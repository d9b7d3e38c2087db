package server

import (
	"fmt"
	"io"
	"runtime/debug"
)

// demo is the rules file of a service that was given none.
const demo = `rules:
  - name: posts-per-hour
    when: {action: post}
    per: [user]
    limit: 5
    window: 1h
`

// greet prints the addresses of the service. When it runs the demo, greet prints
// what to try first.
// paged reports whether the admin address has the page, and others are the listeners other than the API
// and its admin address.
func greet(out io.Writer, rules *namespaces, api string, admin *listener, paged bool, others []named) {
	fmt.Fprintf(out, "weir listens on %s, its admin on %s\n", api, admin.url())
	if paged && admin.at.Scheme != "unix" {
		fmt.Fprintf(out, "page: %s/\n", admin.url())
	}
	for _, f := range others {
		fmt.Fprintf(out, "%s: %s\n", speaks[f.Name].calls, f.url())
	}
	n, without := rules.rules()
	switch {
	case rules.place.dir != "":
		with, more := "1 namespace", ""
		if spaces := len(rules.set.All()) - without; spaces != 1 {
			with = fmt.Sprintf("%d namespaces", spaces)
		}
		if without > 0 {
			more = fmt.Sprintf("; %d more with errors", without)
		}
		fmt.Fprintf(out, "rules: %d in %s from %s%s\n", n, with, rules.place.dir, more)
		return
	case rules.place.file.stdin != nil:
		fmt.Fprintf(out, "rules: %d from the standard input\n", n)
		return
	case rules.place.file.pushed():
		fmt.Fprintf(out, "rules: %d from the xDS server\n", n)
		return
	case rules.place.path() != "":
		fmt.Fprintf(out, "rules: %d from %s\n", n, rules.place.path())
		return
	}
	fmt.Fprintf(out, `
Without --rules, weir serves a demo rule: five posts an hour per user.
Try it; the sixth call is denied:

  for i in 1 2 3 4 5 6; do
    curl %s/v1/take -d '{"attributes": {"action": "post", "user": "42"}}'
  done

Then write your own rules: weir init rules.yaml && weir serve --rules rules.yaml
`, api)
}

// speaks has the purpose of the listeners other than the API and its admin address: for users, and in
// the log.
var speaks = map[string]struct{ calls, clients string }{
	"grpc": {"gRPC", "gRPC"}, "resp": {"Redis protocol", "Redis clients"}, "koala": {"koala's calls", "koala's clients"},
	"metrics": {"metrics", "scrapers"},
}

// Version returns the version of this build, or (devel) when it has none.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Commit returns the commit of this build, with a + if files were changed, and the date of
// the commit in UTC. They are empty when they are not known.
func Commit() (commit, date string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	return commitOf(info.Settings)
}

// commitOf returns the commit in the settings of a build, and its date.
func commitOf(settings []debug.BuildSetting) (commit, date string) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)] + commit
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += "+"
		case s.Key == "vcs.time":
			date = s.Value
		}
	}
	if commit == "+" {
		return "", date
	}
	return commit, date
}
