package urlpath_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/urlpath"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"/api/y":                  "/api/y",
		"/api/y?x=/../z":          "/api/y",
		"/api/y#z":                "/api/y",
		"/x/../api/y":             "/api/y",
		"//api/y":                 "/api/y",
		"/%61pi/y":                "/api/y",
		"/%61%70%69/y":            "/api/y",
		"/./api//y":               "/api/y",
		"/x/%2e%2E/api/y":         "/api/y",
		"/x%2f..%2fapi/y":         "/api/y",
		"/../../api/y":            "/api/y",
		"/api/y/":                 "/api/y/",
		"/api/y/.":                "/api/y/",
		"/api/y/..":               "/api/",
		"/api/%zz/%6":             "/api/%zz/%6",
		"/api/%zz/%61":            "/api/%zz/a",
		"http://h/x/../api/y?q":   "/api/y",
		`/api\y`:                  "/api/y",
		`/x\..\api/y`:             "/api/y",
		"http:/api/y":             "/api/y",
		"HTTPS:/api/y?q":          "/api/y",
		"/api%5cy":                "/api/y",
		"/api/a:/b":               "/api/a:/b",
		"http://h":                "/",
		"http://h?/x":             "/",
		"http://h#/x":             "/",
		"/x?a=://h/y":             "/x",
		"/redirect?to=http://h/x": "/redirect",
		"":                        "/",
		"*":                       "/*",
		"/":                       "/",
		"/..":                     "/",
		"/.well-known/x":          "/.well-known/x",
	} {
		if got := urlpath.Clean(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

// FuzzClean checks that a clean path has no segment that a server would
// resolve, and that segments without meaning do not change it.
func FuzzClean(f *testing.F) {
	for _, uri := range []string{"/api/y", "//a/../b/./c/", "/%2e%2e/%zz", "http://h/p?q"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		got := urlpath.Clean(uri)
		if !strings.HasPrefix(got, "/") || strings.Contains(got, "//") {
			t.Fatalf("%q: got %q, want a path without empty segments", uri, got)
		}
		for segment := range strings.SplitSeq(got, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q: got %q, want it without dots", uri, got)
			}
		}
		if strings.HasPrefix(uri, "/") {
			for _, same := range []string{"/." + uri, "//" + uri, "/x/.." + uri} {
				if again := urlpath.Clean(same); again != got && !strings.Contains(uri, "://") {
					t.Fatalf("%q: got %q, want %q as of %q", same, again, got, uri)
				}
			}
		}
	})
}
