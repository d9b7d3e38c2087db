package koalafile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/rule"
)

// row is a result row, with its fields in koala's order and spelling. In an
// answer its Ret_code is replaced by the return code of the rule.
type row struct {
	RetType   int32  `json:"Ret_type"`
	RetCode   int32  `json:"Ret_code"`
	ErrNo     int32  `json:"Err_no"`
	ErrMsg    string `json:"Err_msg"`
	StrReason string `json:"Str_reason"`
	NeedVcode int32  `json:"Need_vcode"`
	VcodeLen  int32  `json:"Vcode_len"`
	VcodeType int32  `json:"Vcode_type"`
	Other     string `json:"Other"`
	Version   int32  `json:"Version"`
}

// fields returns pointers to r's fields by their names in lower case without
// underscores, which is common to the spellings of all versions of koala.
func (r *row) fields() map[string]any {
	return map[string]any{
		"rettype": &r.RetType, "retcode": &r.RetCode, "errno": &r.ErrNo, "errmsg": &r.ErrMsg,
		"strreason": &r.StrReason, "needvcode": &r.NeedVcode, "vcodelen": &r.VcodeLen,
		"vcodetype": &r.VcodeType, "other": &r.Other, "version": &r.Version,
	}
}

// outcome returns r as an outcome of rules. A row without an error and without
// a captcha lets the request pass.
func (r *row) outcome() rule.Outcome {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and strings always have a JSON form
	}
	return rule.Outcome{Allow: r.ErrNo == 0 && r.NeedVcode == 0, Body: body}
}

// OutcomeName returns the name of the outcome of result row n.
func OutcomeName(n int64) string { return "koala-" + strconv.FormatInt(n, 10) }

// defaultRows adds rows 0 (no rule matched) and 1 (no rule over its limit) to a
// file without them. As in koala, their fields are empty.
func (p *pass) defaultRows() {
	for n := range int64(2) {
		if _, ok := p.file.Outcomes[OutcomeName(n)]; !ok {
			p.file.Outcomes[OutcomeName(n)] = new(row).outcome()
		}
	}
}

// readRow reads one line of [result], `number : {…}`.
func (p *pass) readRow(s piece) {
	number, text, ok := s.cut(":")
	n, err := strconv.ParseInt(number.text, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt32 {
		p.fault(s, `want a result row as number : {…}, such as 2 : {"Ret_type":2, "Err_no":10, "Str_reason":"Deny"}`)
		return
	}
	if _, twice := p.file.Outcomes[OutcomeName(n)]; twice {
		p.fault(number, "row %d appears twice: want one", n)
		return
	}
	r := p.row(text)
	p.file.Outcomes[OutcomeName(n)] = r.outcome()
	if p.here.comment != "" {
		p.file.RowComments[OutcomeName(n)] = p.here.comment
	}
}

// row reads the JSON of a result row.
func (p *pass) row(s piece) (r row) {
	var raw map[string]json.RawMessage
	err := json.Unmarshal([]byte(s.text), &raw)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// The offset is one past the wrong byte.
		p.fault(s.from(min(max(int(syntax.Offset)-1, 0), len(s.text))), "the row is not JSON: %v", err)
		return r
	case err != nil || raw == nil:
		p.fault(s, `the row is not a JSON object: want {"Ret_type":2, …}`)
		return r
	}
	fields := r.fields()
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		field, known := fields[strings.ToLower(strings.ReplaceAll(key, "_", ""))]
		if !known {
			p.warn(s.find(key), "unknown field %q, which koala and weir ignore: want one such as Err_no or Str_reason", key)
			continue
		}
		if err := json.Unmarshal(raw[key], field); err != nil {
			want := "text in quotes"
			if _, ok := field.(*int32); ok {
				want = fmt.Sprintf("a whole number up to %d", math.MaxInt32)
			}
			p.fault(s.find(key), "%s is %s, want %s", key, raw[key], want)
		}
	}
	return r
}

// find returns the part of s that starts at key.
func (s piece) find(key string) piece {
	return s.from(max(strings.Index(s.text, `"`+key+`"`), 0))
}
