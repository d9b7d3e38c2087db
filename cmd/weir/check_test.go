package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// weir check prints so many warnings that a person can scroll through them, and the number of the others.
func TestCheckBoundsWarnings(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString("rules: [{name: posts, per: [user], limit: 5, window: 1h}]\nlists:\n")
	for i := range 1234 {
		fmt.Fprintf(&file, "  unused%d: {values: [a]}\n", i)
	}
	var out, errs bytes.Buffer
	status := run([]string{"check", "-"}, strings.NewReader(file.String()), &out, &errs)
	if lines := strings.Count(errs.String(), "warning: "); status != 0 || lines != 1001 || !strings.HasSuffix(errs.String(), "\nwarning: 234 more are not shown\n") || !strings.Contains(out.String(), "1234 warnings") {
		t.Errorf("got status %d, %s and %d lines of warnings, want 0 and 1001", status, &out, lines)
	}

	out.Reset()
	var got struct{ Files []checked }
	status = run([]string{"check", "--json", "-"}, strings.NewReader(file.String()), &out, &errs)
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || status != 0 || len(got.Files[0].Warnings) != 1000 || got.Files[0].More != 234 {
		t.Errorf("got status %d, error %v and %.200s, want 1000 warnings and 234 more", status, err, &out)
	}
}
