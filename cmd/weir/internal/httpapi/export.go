package httpapi

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/internal/jsontext"
)

// The fields of the trailer of an export, which say what its last line says in NDJSON.
const (
	trailerComplete = "Weir-Complete"
	trailerKeys     = "Weir-Keys"
	trailerUnknown  = "Weir-Unknown"
	trailerAfter    = "Weir-After"
)

const (
	exportChunk   = 32 << 10 // bytes that are written at once
	exportTimeout = 10 * time.Second
)

// exportAsked is what a call of /v1/export asks for.
type exportAsked struct {
	rule string
	csv  bool
	export.Options
}

// export streams the keys of a rule.
func (a *API) export(x *exchange, w http.ResponseWriter, r *http.Request) error {
	asked, err := exportOf(r)
	if err != nil {
		return err
	}
	end, err := answer.BeginExport(x.namespace, x.Caller)
	if err != nil {
		return err
	}
	defer end()
	again := func() error { return answer.Again(a.auth, r, x.namespace, x.Caller) }
	s := exportStream{w: w, to: http.NewResponseController(w), again: again, out: x.out[:0], csv: asked.csv}
	asked.Begin, asked.Each = s.begin, s.key
	result, err := x.namespace.Engine().Export(r.Context(), asked.rule, asked.Options)
	x.out = s.out
	switch {
	case !s.begun && errors.Is(err, export.ErrNoPeriod):
		return badParameter("period", err.Error())
	case !s.begun && err != nil:
		return err
	}
	s.end(asked, result, err)
	_ = s.to.SetWriteDeadline(time.Now().Add(exportTimeout))
	return nil
}

// exportOf reads ?rule=NAME&period=…&format=…&n=…&after=….
func exportOf(r *http.Request) (o exportAsked, err error) {
	var format string
	var after *string
	err = parametersOnce(r.URL.RawQuery, func(param, value string) (err error) {
		switch param {
		case "rule":
			o.rule = value
		case "period":
			if o.Closed = value == "last"; !o.Closed && value != "current" {
				return badParameter(param, fmt.Sprintf("%.64q: want current or last", value))
			}
		case "format":
			if format = value; format != "ndjson" && format != "csv" {
				return badParameter(param, fmt.Sprintf("%.64q: want ndjson or csv", value))
			}
		case "n":
			if o.Most, err = strconv.ParseInt(value, 10, 64); err != nil || o.Most < 1 {
				return badParameter(param, fmt.Sprintf("%.64q: want a number from 1 on", value))
			}
		case "after":
			after = &value
		default:
			return badParameter(param, "is unknown; want rule, period, format, n and after")
		}
		return nil
	})
	switch {
	case err != nil:
		return o, err
	case o.rule == "":
		return o, badParameter("rule", "is missing; name one, as in ?rule=tokens-per-month")
	}
	if after != nil {
		var ok bool
		if o.After, ok = answer.ParsePlace(o.rule, o.Closed, *after); !ok {
			return o, badParameter("after", "is no place where an export of this rule ended")
		}
	}
	if o.csv = format == "csv"; format == "" {
		o.csv = prefersCSV(r.Header.Values("Accept"))
	}
	return o, nil
}

// prefersCSV reports whether the first type of an Accept header that an export can have is CSV.
func prefersCSV(accept []string) bool {
	for _, list := range accept {
		for item := range strings.SplitSeq(list, ",") {
			switch kind, _, _ := mime.ParseMediaType(item); kind {
			case "text/csv":
				return true
			case "application/x-ndjson", "application/json", "*/*":
				return false
			}
		}
	}
	return false
}

// exportStream writes the lines of an export.
type exportStream struct {
	w     http.ResponseWriter
	to    *http.ResponseController
	again func() error // see [answer.Again]
	out   []byte
	csv   bool
	begun bool
	names []string // of the attributes
}

func (s *exportStream) begin(per []string) error {
	s.begun, s.names = true, per
	// An export takes longer than other calls: a client that reads has time enough for each part, and the first one may
	// take long to find.
	_, _ = s.to.SetReadDeadline(time.Time{}), s.to.SetWriteDeadline(time.Time{})
	h := s.w.Header()
	h.Set("Trailer", strings.Join([]string{trailerComplete, trailerKeys, trailerUnknown, trailerAfter}, ", "))
	if !s.csv {
		h.Set("Content-Type", "application/x-ndjson")
		return nil
	}
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	columns := []string{"used", "held", "quota", "start", "end", "at"}
	for _, name := range per {
		if slices.Contains(columns, name) {
			name = "attributes." + name
		}
		s.out = append(appendCSV(s.out, name), ',')
	}
	s.out = append(append(s.out, strings.Join(columns, ",")...), "\r\n"...)
	return nil
}

// key writes the line of a key.
func (s *exportStream) key(k *export.Key) error {
	if s.csv {
		s.out = appendRow(s.out, k)
	} else {
		s.out = s.appendLine(s.out, k)
	}
	if len(s.out) < exportChunk {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.again()
}

func (s *exportStream) flush() error {
	err := answer.Send(s.w, s.out, exportTimeout)
	s.out = s.out[:0]
	return err
}

// end writes how the export ended.
func (s *exportStream) end(asked exportAsked, result export.Result, failure error) {
	complete, after := failure == nil && result.Next == nil, ""
	if result.Next != nil {
		after = answer.Place(asked.rule, asked.Closed, result.Next)
	}
	if !s.csv {
		b := strconv.AppendBool(append(s.out, `{"complete":`...), complete)
		b = strconv.AppendInt(append(b, `,"keys":`...), result.Keys, 10)
		b = strconv.AppendInt(append(b, `,"unknown":`...), result.Unknown, 10)
		if after != "" && failure == nil {
			b = jsontext.AppendText(append(b, `,"after":`...), after)
		}
		if failure != nil && !errors.Is(failure, context.Canceled) {
			b = jsontext.AppendText(append(b, `,"error":`...), answer.ProblemOf(failure).Error())
		}
		s.out = append(b, "}\n"...)
	}
	_ = s.flush() // an error means that the caller is gone
	h := s.w.Header()
	h.Set(trailerComplete, strconv.FormatBool(complete))
	h.Set(trailerKeys, strconv.FormatInt(result.Keys, 10))
	h.Set(trailerUnknown, strconv.FormatInt(result.Unknown, 10))
	if after != "" && failure == nil {
		h.Set(trailerAfter, after)
	}
}

// appendLine appends a key as a line of JSON.
func (s *exportStream) appendLine(b []byte, k *export.Key) []byte {
	b = append(b, `{"attributes":{`...)
	for i, v := range k.Values {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendText(append(jsontext.AppendText(b, s.names[i]), ':'), v)
	}
	b = strconv.AppendInt(append(b, `},"used":`...), k.Used, 10)
	b = strconv.AppendInt(append(b, `,"held":`...), k.Held, 10)
	if k.HasQuota() {
		b = strconv.AppendInt(append(b, `,"quota":`...), k.Quota, 10)
	}
	if k.Length > 0 {
		b = appendTime(append(b, `,"start":`...), k.Start.Time())
		b = appendTime(append(b, `,"end":`...), k.Start.Add(k.Length).Time())
	}
	if len(k.History) > 0 {
		b = appendSeries(append(b, `,"history":`...), k.History)
	}
	b = appendTime(append(b, `,"at":`...), k.At.Time())
	return append(b, "}\n"...)
}

// appendRow appends a key as a row of CSV.
func appendRow(b []byte, k *export.Key) []byte {
	for _, v := range k.Values {
		b = append(appendCSV(b, v), ',')
	}
	b = append(strconv.AppendInt(b, k.Used, 10), ',')
	b = append(strconv.AppendInt(b, k.Held, 10), ',')
	if k.HasQuota() {
		b = strconv.AppendInt(b, k.Quota, 10)
	}
	b = append(b, ',')
	if k.Length > 0 {
		b = k.Start.Time().AppendFormat(b, time.RFC3339Nano)
		b = k.Start.Add(k.Length).Time().AppendFormat(append(b, ','), time.RFC3339Nano)
	} else {
		b = append(b, ',')
	}
	b = k.At.Time().AppendFormat(append(b, ','), time.RFC3339Nano)
	return append(b, "\r\n"...)
}

// appendCSV appends a text as a field of CSV. A text that a spreadsheet could take for a formula gets
// an apostrophe, because callers choose the values of attributes.
func appendCSV(b []byte, text string) []byte {
	b = append(b, '"')
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		b = append(b, '\'')
	}
	for {
		before, after, found := strings.Cut(text, `"`)
		if b = append(b, before...); !found {
			return append(b, '"')
		}
		b, text = append(b, `""`...), after
	}
}
