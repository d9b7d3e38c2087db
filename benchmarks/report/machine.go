package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Head writes the head of the document: the machine, the date, and the modules.
func Head(w io.Writer, now time.Time, command, redis string, rounds int, modules, absent []string) {
	fmt.Fprintf(w, "# weir and its peers, measured side by side\n\n")
	fmt.Fprintf(w, "%s, %d cores; %s, %s/%s; Redis %s; %s. Made by `%s`: medians of %d rounds in which all rows of a table "+
		"take turns. Compare ratios within a table. Rows that weir loses are printed like all others.\n",
		processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, redis,
		now.Format("2 January 2006"), command, rounds)
	fmt.Fprintf(w, "\nVersions: %s.\n", strings.Join(versions(modules), ", "))
	if len(absent) > 0 {
		fmt.Fprintf(w, "\nNot measured: %s.\n", strings.Join(absent, "; "))
	}
}

// processor returns the name of the CPU on Linux.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// versions returns the modules, each once, with the version in this build.
func versions(modules []string) []string {
	built := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if built[m.Path] = m.Version; m.Replace != nil {
				built[m.Path] = "of this tree"
			}
		}
	}
	slices.Sort(modules)
	var list []string
	for _, m := range slices.Compact(modules) {
		if m == "" {
			continue
		}
		if version, ok := built[m]; ok {
			list = append(list, m+" "+version)
		}
	}
	return list
}
