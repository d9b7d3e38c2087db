package telemetry

import (
	"net/url"
	"os"
	"strings"

	"github.com/weirhq/weir/fault"
)

// checkSecrets returns an error if a variable that can have a secret cannot be read: the
// headers and the URLs of a signal. The exporters would log the whole value, and ignore
// it. The error does not have the value.
func checkSecrets(signal string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"} {
		if value := os.Getenv(name); value != "" && !isHeaders(value) {
			return fault.Newf(name, "want NAME=VALUE, or several with commas between; a value has no commas and no %%, which are written %%2C and %%25")
		}
	}
	for _, name := range []string{envEndpoint, "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"} {
		if _, err := url.Parse(os.Getenv(name)); err != nil {
			return fault.Newf(name, "want a URL such as http://localhost:4318")
		}
	}
	return nil
}

// isHeaders reports whether the exporters can read text as header fields.
func isHeaders(text string) bool {
	for field := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, ok := strings.Cut(field, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsFunc(name, notOfName) {
			return false
		}
		if _, err := url.PathUnescape(value); err != nil {
			return false
		}
	}
	return true
}

// notOfName reports whether r cannot be in the name of a header field.
func notOfName(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
