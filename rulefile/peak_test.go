//go:build linux

package rulefile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/rulefile"
)

// Rules that are parsed one by one take less than half of the memory that they take as a whole. A process of its own reads
// each file, and states the most memory that it had.
func TestMemoryOfLongLists(t *testing.T) {
	if path := os.Getenv("WEIR_TEST_RULES"); path != "" {
		if _, err := rulefile.Load(path); err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		fmt.Println("peak", strings.TrimSpace(peak))
		return
	}
	t.Parallel()
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 8000 {
		fmt.Fprintf(&b, "  - name: plan-%d\n    when: {tenant: t%d, path: /v1/*}\n    per: [user]\n    limit: %d\n    window: 1h\n", i, i, i%10)
	}
	peak := func(src []byte) (kib int) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, src, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryOfLongLists$")
		cmd.Env = append(os.Environ(), "WEIR_TEST_RULES="+path, "GOGC=50")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := fmt.Sscanf(string(out), "peak %d kB", &kib); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return kib
	}
	parts, whole := peak([]byte(b.String())), peak(inOnePart([]byte(b.String())))
	if parts > whole/2 {
		t.Errorf("got a peak of %d KiB, want at most half of the %d KiB of the whole file", parts, whole)
	}
}
