package koalaapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weirhq/weir/store"
)

// subrequest is one of the requests of a multi/browse.
type subrequest struct {
	ID  string `json:"Id"`
	Arg string
}

// maxSubrequests is the maximum number of requests in a multi/browse, as in a batch of the JSON
// API.
const maxSubrequests = 1000

// The memory of a multi/browse. jobBytes is about that of one request and of its row, while the answer grows, and
// escapedTimes is how much longer text can be in the answer. A call that takes up to smallMulti bytes is not counted.
const (
	jobBytes     = 512
	escapedTimes = 6
	smallMulti   = 64 << 10
)

// multi answers browse for several requests. Every rule applies to each of them. If there are
// too many, none is decided and each gets the row of a failure; a list that cannot be read gets one
// row. koala's client for PHP takes an answer without rows for permission.
func (a *API) multi(x *exchange, _ *http.Request) reply {
	args := x.parameter("argsJson")
	if n := strings.Count(args, ",")*jobBytes + escapedTimes*len(args); n > smallMulti {
		if err := x.memory.Reserve(int64(n)); err != nil {
			return busy(err, oneRow)
		}
	}
	var jobs []subrequest
	if json.Unmarshal([]byte(args), &jobs) != nil {
		return reply{http.StatusBadRequest, oneRow(x.out[:0], failure(-1, `argsJson: want [{"Id": "0", "Arg": "name=value"}]`))}
	}
	status := 0
	if len(jobs) > maxSubrequests {
		status = http.StatusBadRequest
	}
	if len(jobs) == 0 {
		return reply{body: []byte("null")} // as koala writes an empty list
	}
	out := append(x.out[:0], '[')
	for i := range jobs {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(append(out, `{"Id":`...), jobs[i].ID)
		out = append(out, `,"Result":`...)
		x.read(jobs[i].query())
		if status != 0 {
			out = oneRow(out, failure(-1, "more than 1000 requests"))
		} else if err := a.ask(x, store.Check); err != nil {
			out = oneRow(out, failure(-1, err.Error()))
		} else {
			r, ruled := answerTo(&x.item[0].Decision)
			if !ruled {
				r.RetCode = 0 // as koala has it
			}
			out = r.appendTo(out)
		}
		out = append(out, '}')
	}
	x.out = append(out, ']')
	return reply{status, x.out}
}

// query returns the query of j. koala's clients escape the whole query once
// more, and koala unescapes Arg once, as a whole; other clients send the query
// as it is. query unescapes Arg only if a separator in it is escaped, one of
// two parameters or of a name and its value.
func (j *subrequest) query() string {
	for parameter := range strings.SplitSeq(j.Arg, "&") {
		switch strings.Count(parameter, "=") {
		case 0:
			if hasEscape(parameter, "%3d") {
				return unescape(j.Arg)
			}
		case 1: // name=value
		default: // a value has no unescaped =, so this one belongs to another parameter
			if hasEscape(parameter, "%26") {
				return unescape(j.Arg)
			}
		}
	}
	return j.Arg
}

// hasEscape reports whether text contains escape, which is in lower case.
func hasEscape(text, escape string) bool {
	return strings.Contains(strings.ToLower(text), escape)
}
