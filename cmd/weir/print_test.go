package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestUsageSaysThatItIsDegraded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"rule":"posts","key":"ann","quota":3,"used":1,"remaining":2,"reset_after":60,"degraded":true}`)
	}))
	defer s.Close()
	var out, errs strings.Builder
	status := run([]string{"usage", "posts", "user=ann", "--addr", s.URL}, strings.NewReader(""), &out, &errs)
	if status != 0 || !strings.HasPrefix(out.String(), "degraded: the store did not answer; ") {
		t.Errorf("got status %d, %q, %q, want a first line that starts with degraded", status, out.String(), errs.String())
	}
}
