package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weirhq/weir"
)

// job is one of the requests of a multi/browse.
type job struct {
	ID  string `json:"Id"`
	Arg string
}

// maxJobs bounds a multi/browse, as the batch of the JSON API is bounded.
const maxJobs = 1000

// multi is browse for several requests, each of them held to every rule.
func (a *API) multi(x *exchange, _ *http.Request) reply {
	var jobs []job
	if json.Unmarshal([]byte(x.parameter("argsJson")), &jobs) != nil || len(jobs) > maxJobs {
		return reply{status: http.StatusBadRequest}
	}
	out := append(x.out[:0], '[')
	for i := range jobs {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(append(out, `{"Id":`...), jobs[i].ID)
		out = append(out, `,"Result":`...)
		x.read(jobs[i].query())
		if err := x.ask(a.engine, weir.Check); err != nil {
			out = failed(err).appendTo(out)
		} else {
			t := a.table(x.decision.Rules)
			a.count(t, &x.decision, false)
			out = append(out, t.answer(&x.decision)...)
		}
		out = append(out, '}')
	}
	x.out = append(out, ']')
	return reply{body: x.out}
}

// query is the query that j asks about. Koala's clients escape it once more as
// a whole, which leaves no `=` in it; others send it as it is.
func (j *job) query() string {
	if strings.Contains(j.Arg, "=") {
		return j.Arg
	}
	return unescape(j.Arg)
}
