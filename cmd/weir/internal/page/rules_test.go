package page_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/rulefile"
)

// slowSources has a text for each namespace. It takes until end to check that of the namespace default.
type slowSources struct{ end chan struct{} }

func (s slowSources) Source(name string) (page.Source, error) {
	return page.Source{Name: "rules.yaml", Text: []byte("rules: [{name: a, limit: 1, window: 1m}]"), Warnings: func(*rulefile.File) []rulefile.Warning {
		if name == "default" {
			<-s.end
		}
		return nil
	}}, nil
}

func (s slowSources) Save(name string, _ []byte, _ string, _ audit.Caller) (page.Source, error) {
	return s.Source(name)
}

// Nobody waits for the checks of callers who are bound to a namespace but those.
func TestChecksOfOneNamespace(t *testing.T) {
	t.Parallel()
	p := site(t, nil)
	synctest.Test(t, func(t *testing.T) {
		slow := slowSources{make(chan struct{})}
		(&page.Rules{Sources: slow, Trials: trial.NewRunner(nil, "", 0)}).AddTo(p)
		bound := make(chan string)
		go func() {
			bound <- page.WithHolder(p, &access.Holder{Namespace: "default", Scopes: access.Read})("/page/source")
		}()
		synctest.Wait()
		if got := page.WithHolder(p, &access.Holder{Scopes: access.All})("/page/source"); !strings.Contains(got, "rules.yaml") {
			t.Errorf("got %s, want the rules file", got)
		}
		close(slow.end)
		if got := <-bound; !strings.Contains(got, "rules.yaml") {
			t.Errorf("got %s, want the rules file", got)
		}
	})
}
