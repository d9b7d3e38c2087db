package overrides

import (
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
)

// AppendJSON appends o as a JSON object.
func (o *Override) AppendJSON(b []byte) []byte {
	b = jsontext.AppendText(append(b, `{"rule":`...), o.Rule)
	b = append(b, `,"attributes":{`...)
	for i, a := range o.Attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendText(append(jsontext.AppendText(b, a.Name), ':'), a.Value)
	}
	b = strconv.AppendInt(append(b, `},"limit":`...), o.Limit, 10)
	if o.Burst > 0 {
		b = strconv.AppendInt(append(b, `,"burst":`...), o.Burst, 10)
	}
	if !o.Until.IsZero() {
		b = append(o.Until.AppendFormat(append(b, `,"until":"`...), time.RFC3339Nano), '"')
	}
	if o.Note != "" {
		b = jsontext.AppendText(append(b, `,"note":`...), o.Note)
	}
	if o.By != "" {
		b = jsontext.AppendText(append(b, `,"by":`...), o.By)
	}
	b = append(o.Set.AppendFormat(append(b, `,"set":"`...), time.RFC3339Nano), '"')
	if o.Idle {
		b = append(b, `,"idle":true`...)
	}
	return append(b, '}')
}
