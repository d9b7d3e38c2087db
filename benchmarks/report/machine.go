package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine describes the run: where it was, when, and what was measured.
type Machine struct {
	Began    time.Time
	Took     time.Duration
	Command  string // that repeats the run
	Redis    string // version
	Rounds   int
	Priority string   // of the process
	Modules  []string // that were measured
	Absent   []string // that were not, with the reasons

	// Load is the system's load just before the run, and at its end: how many
	// threads wanted a core. Empty where the system does not tell.
	Load [2]string
}

// Text returns the facts that a reader of any number needs.
func (m *Machine) Text() string {
	return fmt.Sprintf("%s, %d cores; %s, %s/%s; Redis %s; %s. Medians of at least %d rounds in which all rows of a table take turns. "+
		"Compare ratios within a table: other programs on the machine change single numbers. Rows that weir loses are printed like all others.",
		processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, m.Redis, m.Began.UTC().Format("2 January 2006"), m.Rounds)
}

// Head writes the head of a document with some of the tables.
func (m *Machine) Head(w io.Writer) {
	fmt.Fprintf(w, "# weir and its peers, measured side by side\n\n%s Made by `%s`.\n", m.Text(), m.Command)
	fmt.Fprintf(w, "\nVersions: %s.\n", strings.Join(versions(m.Modules), ", "))
	if len(m.Absent) > 0 {
		fmt.Fprintf(w, "\nNot measured: %s.\n", strings.Join(m.Absent, "; "))
	}
}

// Write writes the section with all facts.
func (m *Machine) Write(w io.Writer) {
	fmt.Fprintf(w, "\n## The machine and the versions\n\n")
	for _, fact := range [][2]string{
		{"run", fmt.Sprintf("%s, %v, by %#q", m.Began.UTC().Format("2006-01-02 15:04:05 UTC"), m.Took.Round(time.Second), m.Command)},
		{"processor", fmt.Sprintf("%s, %d cores", processor(), runtime.NumCPU())},
		{"threads on one core", siblings()},
		{"caches", caches()},
		{"memory", memory()},
		{"system", runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease", "unknown")},
		{"Go", runtime.Version()},
		{"Redis", m.Redis},
		{"priority", m.Priority},
		{"load at the start and at the end", fmt.Sprintf("%s and %s", m.Load[0], m.Load[1])},
	} {
		fmt.Fprintf(w, "- %s: %s\n", fact[0], fact[1])
	}
	fmt.Fprintf(w, "\nVersions: %s.\n", strings.Join(versions(m.Modules), ", "))
	if len(m.Absent) > 0 {
		fmt.Fprintf(w, "\nNot measured: %s.\n", strings.Join(m.Absent, "; "))
	}
}

// Load returns the load of the last minute.
func Load() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg", "unknown"), " ")
	return load
}

// firstLine returns the first line of a file of the system.
func firstLine(path, otherwise string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// siblings returns how many of the system's processors share a core.
func siblings() string {
	list := firstLine("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "")
	if list == "" {
		return "unknown"
	}
	return strconv.Itoa(1 + strings.Count(list, ",") + strings.Count(list, "-"))
}

// caches returns the sizes of a core's caches.
func caches() string {
	var list []string
	for i := range 8 {
		folder := "/sys/devices/system/cpu/cpu0/cache/index" + strconv.Itoa(i) + "/"
		if size := firstLine(folder+"size", ""); size != "" && firstLine(folder+"type", "") != "Instruction" {
			list = append(list, "L"+firstLine(folder+"level", "?")+" "+size)
		}
	}
	if len(list) == 0 {
		return "unknown"
	}
	return strings.Join(list, ", ")
}

// memory returns the size of the machine's memory.
func memory() string {
	fields := strings.Fields(firstLine("/proc/meminfo", ""))
	if len(fields) < 2 {
		return "unknown"
	}
	kilobytes, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GB", kilobytes/1024/1024)
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
	modules = slices.Clone(modules)
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
