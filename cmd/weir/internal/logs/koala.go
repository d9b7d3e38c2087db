package logs

import (
	"errors"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// koalaLine reads the log of koala's calls: lines such as
//
//	NOTICE: 2013-06-28 18:30:56 [logid=1 file=… no=88 call=…] [ cip=10.0.0.1 intf=/rule/browse act=ask uid=7 ] [ BodyString=… ]
//
// The fields are time, cip (the caller's address), intf (the call) and koala's
// arguments. koala does not escape the values, so a value can have blanks, and text
// that looks like another argument is one. Other lines of koala's log hold no call.
type koalaLine struct{ places places }

func newKoala(_ *format, fields []string) extractor { return &koalaLine{placesOf(fields)} }

const (
	koalaStart = "] [ cip="
	koalaEnd   = " ] [ BodyString="
	koalaTime  = len("2006-01-02 15:04:05")
)

var errNotKoala = errors.New("want LEVEL: YYYY-MM-DD hh:mm:ss [")

func (k *koalaLine) extract(line string, values []string) error {
	clear(values)
	level, rest, ok := strings.Cut(line, ": ")
	if !ok || strings.ToUpper(level) != level || len(rest) < koalaTime+2 || rest[koalaTime] != ' ' {
		return errNotKoala
	}
	at := strings.Index(rest, koalaStart)
	if at < 0 {
		return replay.ErrSkip
	}
	k.places.set(values, "time", rest[:koalaTime])
	call := rest[at+len("] [ "):]
	if end := strings.LastIndex(call, koalaEnd); end >= 0 {
		call = call[:end]
	}
	for call != "" {
		name, rest, _ := strings.Cut(call, "=")
		value := rest
		call = ""
		for from := 0; ; { // the value ends at a blank before the next name
			blank := strings.IndexByte(rest[from:], ' ')
			if blank < 0 {
				break
			}
			blank += from
			if next := strings.IndexAny(rest[blank+1:], " ="); next > 0 && rest[blank+1+next] == '=' {
				value, call = rest[:blank], rest[blank+1:]
				break
			}
			from = blank + 1
		}
		k.places.set(values, name, value)
	}
	return nil
}
