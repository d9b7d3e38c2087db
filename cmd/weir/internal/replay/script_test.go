package replay_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rule"
)

// TestScripts runs testdata. `rules` sets the rules, and `log name=N` adds a log.
// `replay` shows what the rules do to all logs, in order, and drops the logs; with
// the argument json it prints JSON.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		var rules *rule.Set
		var logs []replay.Log
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "rules":
				rules = scripttest.Rules(t, d.Input)
				return ""
			case "log":
				logs = append(logs, text(d.Arg("name"), d.Input))
				return ""
			case "replay":
				report, err := replay.Run(t.Context(), rules, replay.Logs{Files: logs})
				logs = nil
				if err != nil {
					return err.Error()
				}
				return show(t, report, d.HasArg("json"))
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// text returns a log with the given text.
func text(name, content string) replay.Log {
	return replay.Log{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func show(t *testing.T, report *replay.Report, asJSON bool) string {
	t.Helper()
	var out strings.Builder
	var err error
	if asJSON {
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.Write(&out, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
