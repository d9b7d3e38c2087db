package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUntrustedCertificate calls a service whose certificate no known authority has
// signed: the error says what to change, and does not doubt that a service runs.
func TestUntrustedCertificate(t *testing.T) {
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	var out, errs bytes.Buffer
	status := run([]string{"usage", "--addr", service.URL, "posts", "user=42"}, strings.NewReader(""), &out, &errs)
	got := errs.String()
	if status != 1 || !strings.Contains(got, "--ca names its authority") || strings.Contains(got, "running there") {
		t.Errorf("got status %d and %s", status, got)
	}
}

// TestPlainToTLS calls a service that speaks TLS without it: the error says what to
// write.
func TestPlainToTLS(t *testing.T) {
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	var out, errs bytes.Buffer
	url := strings.Replace(service.URL, "https://", "http://", 1)
	status := run([]string{"usage", "--addr", url, "posts", "user=42"}, strings.NewReader(""), &out, &errs)
	if got := errs.String(); status != 1 || !strings.HasSuffix(got, ": the service speaks TLS: write https://\n") {
		t.Errorf("got status %d and %s", status, got)
	}
}
