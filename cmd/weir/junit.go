package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/printable"
)

// The part of the JUnit XML format that test reporters read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		File     string         `xml:"file,attr"`
		Time     string         `xml:"time,attr"`
		Failures []junitProblem `xml:"failure"`
		Error    *junitProblem  `xml:"error"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
)

// writeJUnit writes the results to a file as JUnit XML.
func writeJUnit(name string, suites []suite) error {
	all := junitSuites{}
	for _, s := range suites {
		j := junitSuite{Name: s.name, Tests: len(s.cases), Time: inSeconds(s.took)}
		if s.err != nil {
			text := s.err.Error()
			first, _, _ := strings.Cut(text, "\n")
			j.Tests, j.Errors = j.Tests+1, 1
			j.Cases = append(j.Cases, junitCase{Class: s.name, Name: "the file", File: s.name, Time: "0", Error: &junitProblem{clean(first), clean(text)}})
		}
		for i, c := range s.cases {
			jc := junitCase{Class: s.name, Name: clean(c.Name), File: s.name, Time: inSeconds(s.times[i])}
			for _, f := range c.Failures {
				jc.Failures = append(jc.Failures, junitProblem{clean(f.Summary), clean(f.Error())})
			}
			if len(c.Failures) > 0 {
				j.Failures++
			}
			j.Cases = append(j.Cases, jc)
		}
		all.Suites = append(all.Suites, j)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(text, '\n')...), 0o644)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

// clean returns text without characters that XML or a terminal cannot show.
func clean(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable.Text(line)
	}
	return strings.Join(lines, "\n")
}
