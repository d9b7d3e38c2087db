package httpapi

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
)

// correction is the body of a call that corrects what a rule has for a key.
type correction struct {
	rule       string
	attributes []weir.Attribute
	hits       int64
}

// setCount sets the count of a key.
func (a *API) setCount(x *exchange, w http.ResponseWriter, r *http.Request) error {
	c, err := x.correction(r, true)
	if err != nil {
		return err
	}
	before, used, err := x.namespace.SetCount(answer.Context(r), x.by(r), c.rule, c.attributes, c.hits)
	if err != nil {
		return err
	}
	b := strconv.AppendInt(append(x.out[:0], `{"before":`...), before, 10)
	return x.respond(w, append(strconv.AppendInt(append(b, `,"used":`...), used, 10), '}'))
}

// liftBan ends the ban of a key.
func (a *API) liftBan(x *exchange, w http.ResponseWriter, r *http.Request) error {
	c, err := x.correction(r, false)
	if err != nil {
		return err
	}
	lifted, err := x.namespace.LiftBan(answer.Context(r), x.by(r), c.rule, c.attributes)
	if err != nil {
		return err
	}
	return x.respond(w, append(strconv.AppendBool(append(x.out[:0], `{"lifted":`...), lifted), '}'))
}

// correction reads the body of a call that corrects a key: with a number of hits, or without.
func (x *exchange) correction(r *http.Request, hits bool) (c correction, err error) {
	if err := x.read(r); err != nil {
		return c, err
	}
	s := &x.scan
	s.reset(x.body)
	needed, want := []string{"rule"}, "is unknown; want rule and attributes"
	if hits {
		needed, want = []string{"rule", "hits"}, "is unknown; want rule, attributes and hits"
	}
	f := s.fields(func(name string, at int) (f *fault.Fault) {
		switch {
		case name == "rule":
			c.rule, f = s.textOf("a name in quotes", sizes.Text)
		case name == "attributes":
			c.attributes, f = s.attributes(nil)
		case name == "hits" && hits:
			c.hits, f = s.whole()
		default:
			f = s.fault(at, "%s", want)
		}
		return f
	}, needed...)
	if f != nil {
		return c, f
	}
	return c, nil
}
