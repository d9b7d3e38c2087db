package koalaapi

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rule"
)

// row is an answer of koala's, with the fields in koala's order and spelling.
type row struct {
	RetType   int64  `json:"Ret_type"`
	RetCode   int64  `json:"Ret_code"`
	ErrNo     int64  `json:"Err_no"`
	ErrMsg    string `json:"Err_msg"`
	Reason    string `json:"Str_reason"`
	NeedVcode int64  `json:"Need_vcode"`
	VcodeLen  int64  `json:"Vcode_len"`
	VcodeType int64  `json:"Vcode_type"`
	Other     string
	Version   int64
}

// The rows of requests that no rule decides.
const (
	rowNone   = 0 // no rule matched
	rowWithin = 1 // rules matched, and none was over its limit
)

// rowOf returns the row for an outcome of set. For an outcome that is not one
// of koala's rows it makes one: the outcome's name is the reason, and fields of
// a row in the outcome's body override the others.
func rowOf(set *rule.Set, name string) row {
	outcome, ok := set.Outcome(name)
	r := row{RetType: 2, ErrNo: 10, Reason: "Deny"}
	switch {
	case ok && outcome.Allow, name == koalafile.OutcomeName(rowWithin):
		r = row{RetType: 1, Reason: "Allow"}
	case name == koalafile.OutcomeName(rowNone):
		r = row{Reason: "Allow"}
	case name != rule.Deny:
		r.Reason = name
	}
	told := r
	if json.Unmarshal(outcome.Body, &told) == nil {
		return told
	}
	return r
}

// rowOfRule returns the row of rule i of set, with its return code. A rule without one
// leaves that of the row.
func rowOfRule(set *rule.Set, i int) row {
	of := set.Rule(i)
	r := rowOf(set, cmp.Or(of.Then, rule.Deny))
	r.RetCode = cmp.Or(of.Code, r.RetCode)
	return r
}

// answerTo returns the row for a decision, and whether it is that of a rule.
func answerTo(d *weir.Decision) (r row, ruled bool) {
	switch i, ok := d.Rules.Find(d.Rule); {
	case ok:
		return rowOfRule(d.Rules, i), true
	case len(d.Usages)+len(d.Verdicts) > 0, d.Degraded: // a degraded rule has matched
		return rowOf(d.Rules, koalafile.OutcomeName(rowWithin)), false
	}
	return rowOf(d.Rules, koalafile.OutcomeName(rowNone)), false
}

// failure returns the row for a request that was not decided. code is its Err_no. It is not 0,
// so that clients do not treat the row as permission.
func failure(code int64, text string) row {
	return row{RetType: -1, ErrNo: code, ErrMsg: text, Reason: "Error"}
}

// oneRow, listOfRows and noRow append the answer of a call that r tells has failed. The calls
// that count have no rows in their answers.
func oneRow(out []byte, r row) []byte { return r.appendTo(out) }

func listOfRows(out []byte, r row) []byte { return append(r.appendTo(append(out, '[')), ']') }

func noRow(out []byte, r row) []byte {
	return append(appendText(append(out[:0], `{"err_no":`+strconv.FormatInt(r.ErrNo, 10)+`, "err_msg":`...), r.ErrMsg), '}')
}

func (r row) appendTo(out []byte) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a row holds numbers and text only
	}
	return append(out, b...)
}

// appendText appends text as JSON, with <, > and & escaped, because the content
// type of koala's answers is HTML.
func appendText(out []byte, text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string has a JSON form
	}
	return append(out, b...)
}
