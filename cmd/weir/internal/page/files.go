package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// built has the files that make page builds from ui, with the licences of the packages in them.
//
//go:embed built
var built embed.FS

// policy is the content security policy of the page. It has no inline script, style or event handler, and
// loads nothing from elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// file is a file of the page.
type file struct {
	kind, tag string
	text      []byte
	zipped    func() []byte
}

// readFiles returns the files of the page by their paths. Those of the reports are not served.
func readFiles() map[string]*file {
	all := map[string]*file{}
	entries, _ := fs.ReadDir(built, "built") // which was there when the program was compiled
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "report.") {
			continue
		}
		text, _ := fs.ReadFile(built, "built/"+name)
		sum := sha256.Sum256(text)
		f := &file{
			kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
			text: text, zipped: sync.OnceValue(func() []byte { return zip(text) }),
		}
		switch path.Ext(name) { // whatever the system's table says
		case ".js":
			f.kind = "text/javascript; charset=utf-8"
		case ".css":
			f.kind = "text/css; charset=utf-8"
		case ".html":
			f.kind = "text/html; charset=utf-8"
		}
		if name == "index.html" {
			name = ""
		}
		all["/"+name] = f
	}
	return all
}

// zip compresses text.
func zip(text []byte) []byte {
	var b bytes.Buffer
	to, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
	_, _ = to.Write(text)                                  // to memory
	_ = to.Close()
	return b.Bytes()
}

// serve answers a request for f.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	if !reads(r) {
		answer.Refuse(w, r, notAllowed(r, http.MethodGet))
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // ask each time, so that a new version is seen at once
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.kind)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.text
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped()
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the reader is gone
	}
}

// acceptsGzip reports whether the client of r reads gzip.
func acceptsGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}
