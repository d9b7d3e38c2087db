package api

import (
	"encoding/json"
	"strconv"

	"github.com/weirhq/weir/rule"
)

// row is what koala answers, its fields in koala's order and spelling.
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

// outcomeOf is the name of the outcome that stands for row n of a rule file.
func outcomeOf(n int64) string { return "koala-" + strconv.FormatInt(n, 10) }

// The rows that answer for no rule.
const (
	rowNone   = 0 // no rule matched
	rowWithin = 1 // rules matched, and none was over
)

// rowOf is the row for an outcome of set. One that is not a row of koala's is
// told in koala's words: its name is the reason, and what its body has of a
// row's fields goes into it.
func rowOf(set *rule.Set, name string) row {
	outcome, ok := set.Outcome(name)
	r := row{RetType: 2, ErrNo: 10, Reason: "Deny"}
	switch {
	case ok && outcome.Allow, name == outcomeOf(rowWithin):
		r = row{RetType: 1, Reason: "Allow"}
	case name == outcomeOf(rowNone):
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

// by returns r as the answer of a rule with a return code. A code of 0 means
// that the rule has none: the row keeps its own.
func (r row) by(code int64) row {
	if code > 0 {
		r.RetCode = code
	}
	return r
}

// failed is the row for a request that could not be decided. Its Err_no is not
// 0, so that no client takes it for leave to go on.
func failed(err error) row {
	return row{RetType: -1, ErrNo: -1, ErrMsg: err.Error(), Reason: "Error"}
}

func (r row) appendTo(out []byte) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a row is numbers and text
	}
	return append(out, b...)
}
