package replay_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

func ExampleRun() {
	rules, err := rule.New([]rule.Rule{{
		Name:   "logins",
		When:   []rule.Condition{{Attribute: "path", Test: rule.Equal("/login")}},
		Per:    []string{"ip"},
		Quota:  &rule.Quota{Value: 2},
		Window: window.Sliding(time.Minute),
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}

	// replay.File("access.log.gz") reads the log from a file.
	recorded := replay.Log{Name: "three logins", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(`
10.0.0.1 - - [01/Mar/2026:12:00:00 +0000] "POST /login HTTP/1.1" 200 10
10.0.0.1 - - [01/Mar/2026:12:00:20 +0000] "POST /login HTTP/1.1" 200 10
10.0.0.1 - - [01/Mar/2026:12:00:40 +0000] "POST /login HTTP/1.1" 200 10
`[1:])), nil
	}}
	report, err := replay.Run(context.Background(), rules, replay.Logs{Files: []replay.Log{recorded}})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range report.Rules {
		fmt.Println(t.Name, "matched", t.Matched, "denied", t.Denied, "first at", t.FirstDenied.Format(time.TimeOnly))
		fmt.Println(t.TopDenied[0].Key, t.TopDenied[0].Denied)
	}
	// Output:
	// logins matched 3 denied 1 first at 12:00:40
	// 10.0.0.1 1
}
