package answer

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/rule"
)

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
