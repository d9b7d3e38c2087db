package answer

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
)

// AppendSeconds appends d in seconds as its shortest decimal, and -1 for
// [window.Never].
func AppendSeconds(b []byte, d time.Duration) []byte { return jsontext.AppendSeconds(b, d) }

// AppendTexts appends texts as a JSON array.
func AppendTexts(b []byte, texts []string) []byte { return jsontext.AppendTexts(b, texts) }

// AppendText appends s as a JSON string, with U+FFFD in place of each byte that
// is not UTF-8.
func AppendText(b []byte, s string) []byte { return jsontext.AppendText(b, s) }

// Network returns n as "v4/24 v6/64".
func Network(n rule.Network) string {
	var parts []string
	if n.V4 > 0 {
		parts = append(parts, fmt.Sprintf("v4/%d", n.V4))
	}
	if n.V6 > 0 {
		parts = append(parts, fmt.Sprintf("v6/%d", n.V6))
	}
	return strings.Join(parts, " ")
}
