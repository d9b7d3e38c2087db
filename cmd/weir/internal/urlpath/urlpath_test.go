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

func TestPlain(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"/api/y?x=%2f": "/api/y",
		"/api/x%2fy":   "/api/x%2Fy",
		"/api%5cx/%61": "/api%5Cx/a",
		`//api\x/./y`:  "/api%5Cx/y",
		"/api/x%252fy": "/api/x%2fy",
	} {
		if got := urlpath.Plain(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

// A path that servers read in more than one way is refused where it can be, however it is written.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"/api/users/123%2f..%2f..%2fz", "/api/users/123%5c..%5C..%5cz", `/api/users/123\..\..\z`, "/x/../api/y", "/..", "/api/%2e%2E",
		"/api/.%2e/x?q", "/..;a=b/x", "/x/%2e.%3bv/y", "/#/../api/x", "/api#", "http://h/../x", "..", "/%zz/%2e./x",
	} {
		if urlpath.Check(uri) == nil {
			t.Errorf("%s: got no error", uri)
		}
	}
	for _, uri := range []string{
		"/", "", "*", "/api/y", "//api/y", "/./api", "/api/a..b/...", "/group%2fproject", `/api\y`, "/x?to=/../y#z", "/x;v=../y", "/..x/.y/z..",
		"http://h:80/x?y", "/a%23b",
	} {
		if err := urlpath.Check(uri); err != nil {
			t.Errorf("%s: got %v", uri, err)
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

// FuzzCheck checks that a path without an error stays below each of its directories, as for servers that resolve nothing.
func FuzzCheck(f *testing.F) {
	for _, uri := range []string{"/api/y", "/api/%2e%2e%2fx", "//a/b/./c/", `/a\..\b`, "/#/../api/x"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		path, _, _ := strings.Cut(uri, "?")
		if !strings.HasPrefix(path, "/") || urlpath.Check(uri) != nil {
			return
		}
		got := urlpath.Clean(uri)
		for i := range path {
			if directory := strings.TrimSuffix(urlpath.Clean(path[:i]), "/"); path[i] == '/' && !strings.HasPrefix(got, directory) {
				t.Fatalf("%q: got %q, which is not below %q", uri, got, directory)
			}
		}
	})
}
