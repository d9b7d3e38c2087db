package envoyrls_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// writeMetadata writes the dynamic metadata of an answer, a field a line.
func writeMetadata(b *strings.Builder, out *rls.RateLimitResponse) {
	fields := out.GetDynamicMetadata().GetFields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name].AsInterface()
		if text, ok := value.(string); ok {
			fmt.Fprintf(b, "metadata %s: %s\n", name, masked(text))
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(b, "metadata %s: %s\n", name, text)
	}
}
