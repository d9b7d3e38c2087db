package replay_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

const realLog = "../../shared/data/wordpress-2016.log.gz"

// TestExact holds a replay of a recorded log, with a login brute force in it,
// to an exact count by a script that shares nothing with weir. They agree to
// the last hit, with the rules of the example and with limits that bite more.
func TestExact(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(realLog); err != nil {
		t.Skip("no recorded log beside the project: ", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to run the exact count: ", err)
	}
	for name, limits := range map[string]map[string]int64{
		"example": nil,
		"tight": {
			"logins-per-minute": 3, "logins-per-hour": 4, "requests-per-minute": 40,
			"paths-per-hour": 50, "bytes-per-day": 3_000_000,
		},
		"groups": { // quotas above 100 are kept in groups
			"logins-per-minute": 1000, "logins-per-hour": 250, "requests-per-minute": 150,
			"paths-per-hour": 1000, "bytes-per-day": 20_000_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"../scripts/exact.py", realLog}
			for rule, n := range limits {
				args = append(args, "--limit", rule+"="+strconv.FormatInt(n, 10))
			}
			script := exec.CommandContext(t.Context(), python, args...)
			script.Stderr = t.Output()
			counted, err := script.Output()
			if err != nil {
				t.Fatal(err)
			}
			var exact replay.Report
			if err := json.Unmarshal(counted, &exact); err != nil {
				t.Fatal(err)
			}

			report, err := replay.Run(t.Context(), wordpress(t, limits), []replay.Log{replay.File(realLog)})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := show(t, report, true), show(t, &exact, true); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			t.Log(show(t, report, false))
		})
	}
}

// wordpress are the rules of the example, with other limits for some.
func wordpress(t testing.TB, limits map[string]int64) *rule.Set {
	t.Helper()
	file, err := rulefile.Load("../examples/wordpress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule.Rule
	for i := range file.Set.Len() {
		r := *file.Set.Rule(i)
		if n, ok := limits[r.Name]; ok {
			r.Quota = &rule.Quota{Value: n}
		}
		rules = append(rules, r)
	}
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
