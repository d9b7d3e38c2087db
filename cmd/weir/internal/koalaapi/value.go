package koalaapi

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir/rule"
)

// value answers with the count of the rule `rule_no` for the key that the other
// parameters make. A verdict counts nothing: its value is 0.
func (a *API) value(x *exchange, _ *http.Request) reply {
	t := a.tables.inForce(x.space)
	i := t.numbered(x.parameter("rule_no"))
	if i < 0 {
		return reply{http.StatusBadRequest, []byte(`{"err_no":-2, "err_msg":"unknown rule_no!"}`)}
	}
	var used int64
	if ru := t.set.Rule(i); ru.Kind() != rule.KindVerdict {
		usage, err := x.space.Engine().Usage(a.config.Context, ru.Name, x.item[0].Request.Attributes)
		switch {
		case err == nil:
			used = usage.Used
		case statusOf(err) == http.StatusBadRequest:
			return reply{http.StatusBadRequest, problem(x.out, `{"err_no":-3, "err_msg":`, err.Error())}
		default:
			return reply{http.StatusInternalServerError, []byte(`{"err_no":-1, "err_msg":"system error!"}`)}
		}
	}
	out := append(x.out[:0], `{"err_no":0, "err_msg":"", "cache_val":`...)
	x.out = append(strconv.AppendInt(out, used, 10), '}')
	return reply{body: x.out}
}

// numbered returns the index of the first rule with a return code, or -1 if
// there is none.
func (t *table) numbered(code string) int {
	n, err := strconv.ParseInt(code, 10, 64)
	if err != nil || n < 1 {
		return -1
	}
	for i := range t.lines {
		if t.lines[i].code == n {
			return i
		}
	}
	return -1
}
