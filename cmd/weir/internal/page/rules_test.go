package page_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/rulefile"
)

// slowSources has a text for each namespace. It takes until end to check one with a rule slow.
type slowSources struct{ end chan struct{} }

func (s slowSources) Source(string) (page.Source, error) {
	return page.Source{Name: "rules.yaml", Text: []byte("rules: [{name: a, limit: 1, window: 1m}]"), Warnings: func(file *rulefile.File) []rulefile.Warning {
		if file.Set.Rule(0).Name == "slow" {
			<-s.end
		}
		return nil
	}}, nil
}

func (s slowSources) Save(name string, _ []byte, _ string, _ audit.Caller) (page.Source, error) {
	return s.Source(name)
}

// Nobody waits for the checks of a caller but those who share its part of what there is, and not even they to read the
// rules in force.
func TestChecksOfOthers(t *testing.T) {
	t.Parallel()
	all := &access.Holder{Name: "ops", Scopes: access.All}
	anyone := &access.Holder{Scopes: access.Read} // without tokens
	reader := &access.Holder{Name: "reader", Scopes: access.Read}
	tenant := &access.Holder{Name: "tenant", Namespace: "default", Scopes: access.All}
	for _, slow := range []*access.Holder{anyone, all, reader, tenant} {
		p := site(t, nil)
		synctest.Test(t, func(t *testing.T) {
			sources := slowSources{make(chan struct{})}
			(&page.Rules{Sources: sources, Trials: trial.NewRunner(nil, "", 0)}).AddTo(p)
			checked := make(chan string, 8)
			for range cap(checked) {
				go func() {
					checked <- page.WithHolder(p, slow)("/page/check", "rules: [{name: slow, limit: 1, window: 1m}]")
				}()
			}
			synctest.Wait()
			for _, h := range []*access.Holder{anyone, all, reader, tenant} {
				if got := page.WithHolder(p, h)("/page/source"); !strings.Contains(got, `"rules.yaml"`) {
					t.Errorf("got %s for %v, want the rules file", got, h)
				}
				if h.Share() == slow.Share() {
					continue
				}
				if got := page.WithHolder(p, h)("/page/check", "rules: [{name: b, limit: 1, window: 1m}]"); !strings.Contains(got, `"rules":1`) {
					t.Errorf("got %s for %v, want what was found", got, h)
				}
			}
			close(sources.end)
			for range cap(checked) {
				if got := <-checked; !strings.Contains(got, `"rules":1`) {
					t.Errorf("got %s, want what was found", got)
				}
			}
		})
	}
}

// oneOfTwo is the file of an instance that was one of several that share a store, until a caller saves.
type oneOfTwo struct {
	slowSources
	saved *[]byte
}

func (s oneOfTwo) Source(name string) (page.Source, error) {
	of, err := s.slowSources.Source(name)
	of.ReadOnly = "several instances may share the store"
	return of, err
}

func (s oneOfTwo) Save(name string, text []byte, _ string, _ audit.Caller) (page.Source, error) {
	*s.saved = text
	return s.slowSources.Source(name)
}

// A text is checked before it is saved, also if nobody could save it a moment before.
func TestSavesAreChecked(t *testing.T) {
	t.Parallel()
	p, saved := site(t, nil), []byte(nil)
	(&page.Rules{Sources: oneOfTwo{saved: &saved}, Trials: trial.NewRunner(nil, "", 0)}).AddTo(p)
	tenant := &access.Holder{Name: "tenant", Namespace: "default", Scopes: access.All}
	got := page.WithHolder(p, tenant)("/page/source", "lists: {z: {file: ../secret.txt}}\nrules: [{name: a, when: {u: {in: z}}, limit: 1, window: 1m}]")
	if !strings.Contains(got, "errors") || saved != nil {
		t.Errorf("got %s, and %q saved", got, saved)
	}
}

// deadlines is an answer that knows the last deadline of its writes.
type deadlines struct {
	*httptest.ResponseRecorder
	write *time.Time
}

func (d deadlines) SetReadDeadline(time.Time) error        { return nil }
func (d deadlines) SetWriteDeadline(until time.Time) error { *d.write = until; return nil }

// watched is a body that calls a function before it reads the last kilobyte.
type watched struct {
	*bytes.Buffer
	last func()
}

func (w watched) Read(p []byte) (int, error) {
	if w.Len() < 1<<10 {
		w.last()
	}
	return w.Buffer.Read(p[:min(len(p), 100)])
}

// While a log is uploaded its answer has no deadline: over HTTP/2 that would end the upload. Afterwards it has one again.
func TestUploadOutlastsAnswers(t *testing.T) {
	t.Parallel()
	p := site(t, nil)
	trials := trial.NewRunner(func() *exec.Cmd { return exec.Command("true") }, t.TempDir(), 1<<30) // a worker that finds nothing
	(&page.Rules{Sources: slowSources{}, Trials: trials, Tokens: true}).AddTo(p)
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	_ = form.WriteField("job", `{"text":"rules: [{name: a, limit: 2, window: 1m}]","log":"day.jsonl","format":{"format":"weir"}}`)
	_ = form.WriteField("log", strings.Repeat(`{"time":1777620000000000,"attributes":{"user":"ann"}}`+"\n", 100))
	_ = form.Close()
	until, checked := time.Now(), false
	r := httptest.NewRequest(http.MethodPost, "/page/try", watched{&b, func() {
		if checked = true; !until.IsZero() {
			t.Errorf("the upload ends before the deadline of its answer, %v", until)
		}
	}})
	r.Header.Set("Content-Type", form.FormDataContentType())
	w := deadlines{httptest.NewRecorder(), &until}
	if err := page.Call(p, &access.Holder{Name: "ops", Scopes: access.All}, w, r); err != nil || w.Code != http.StatusAccepted {
		t.Fatalf("got %v, %d %s", err, w.Code, w.Body)
	}
	if !checked || until.IsZero() {
		t.Errorf("body read: %t, deadline of the answer: %v", checked, until)
	}
	trials.Close()
}
