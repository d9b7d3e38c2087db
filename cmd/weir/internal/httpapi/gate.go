package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/urlpath"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// gate takes for a proxy, and answers with the outcome's status and body.
//
// The URL is written by the administrator of the proxy, so only it defines the sources of
// attributes. A header is read only if the URL names it, because otherwise a client could add its own
// attributes. See [gateCall].
func (a *API) gate(x *exchange, w http.ResponseWriter, r *http.Request) error {
	c := gateCall{request: r, rules: x.namespace.Engine().Rules(), proxies: a.proxies, attrs: x.item[0].Request.Attributes[:0]}
	err := parameters(r.URL.RawQuery, c.parameter)
	if c.plain != "" {
		c.choosePath()
	}
	x.item[0].Request = weir.Request{Attributes: c.attrs, Hits: 1, Final: true} // a proxy keeps no receipt
	if err == nil {
		err = x.beginRequest()
	}
	if err != nil {
		return err
	}
	if c.refused != nil {
		return c.refusal(c.refused)
	}
	x.item[0].Verb = store.Take
	if _, err := x.namespace.Run(answer.Context(r), x.item[:], run.Options{Admit: x.admit}); err != nil {
		return c.refusal(err)
	}
	d := &x.item[0].Decision
	x.limits.SetDecision(d)
	a.headers.Set(w.Header(), &x.limits)

	outcome, _ := d.Rules.Outcome(d.Outcome)
	status := outcome.Status
	if s := c.status(d.Outcome); s != 0 && ruleset.CheckStatus(outcome.Allow, s) == nil { // the rules may have changed
		status = s
	}
	switch {
	case len(outcome.Body) > 0:
		w.Header()["Content-Type"] = jsonType
		w.WriteHeader(status)
		_, _ = w.Write(outcome.Body) // an error means that the caller is gone
	case d.Allowed:
		w.WriteHeader(status)
	default:
		headers.Denial(d, status).Write(w)
	}
	return nil
}

// A gateCall collects the parameters in the URL of one gate call:
//
//	NAME=VALUE              an attribute
//	header.NAME=HEADER      an attribute that the proxy sends in a header
//	status.OUTCOME=STATUS   another status for an outcome
type gateCall struct {
	request  *http.Request
	rules    *rule.Set
	proxies  *clientaddr.Proxies
	attrs    []weir.Attribute
	statuses []outcomeStatus
	refused  error  // what is wrong with the value of a header
	plain    string // the path as [urlpath.Plain] has it, if that is another
}

type outcomeStatus struct {
	outcome string
	status  int
}

// parameter adds one parameter of the URL.
func (c *gateCall) parameter(name, value string) (err error) {
	if attribute, ok := strings.CutPrefix(name, "header."); ok {
		if value == "" {
			return badParameter(name, "names no header, want one such as X-Real-IP")
		}
		return c.header(name, attribute, value)
	}
	if outcome, ok := strings.CutPrefix(name, "status."); ok {
		status, err := strconv.Atoi(value)
		if err != nil {
			return badParameter(name, "not a status from 200 to 599")
		}
		if o, ok := c.rules.Outcome(outcome); ok { // others have no effect
			err = ruleset.CheckStatus(o.Allow, status)
		}
		if err != nil {
			return badParameter(name, err.Error())
		}
		c.statuses = append(c.statuses, outcomeStatus{outcome, status})
		return nil
	}
	c.attrs, err = withParameter(c.attrs, name, value)
	return err
}

// status returns the status that the URL sets for an outcome, or 0.
func (c *gateCall) status(outcome string) int {
	for _, s := range c.statuses {
		if s.outcome == outcome {
			return s.status
		}
	}
	return 0
}

// refusal returns the error of a request that is refused for a value that its sender may have chosen. It has the
// status of a denial, because a proxy may forward what is answered with an error, as if weir was not there.
func (c *gateCall) refusal(err error) error {
	status := c.status(rule.Deny)
	if p := answer.ProblemOf(err); status != 0 && p.Status == http.StatusBadRequest {
		p.Status = status
		return p
	}
	return err
}

// maxHeader is the maximum size of an attribute from a header, in bytes. It is more
// than other attributes may have: proxies pass on paths of 8 KiB.
const maxHeader = 8 << 10

// header adds the attribute in a header. An attribute that no rule uses is left
// out, however long it is.
func (c *gateCall) header(name, attribute, header string) error {
	if _, used := c.rules.Compiled().Attribute(attribute); !used {
		return nil
	}
	if f := answer.NameFault(c.attrs, attribute); f != nil {
		return badParameter(name, f.Path+" "+f.Problem)
	}
	value := c.fromHeader(attribute, header)
	if attribute == "ip" && value == "" {
		return badParameter(name, "the request has no header "+header+" with an address: the proxy must set it, or all clients would count as one or none")
	}
	plain := value
	if attribute == "path" && value != "" {
		if err := urlpath.Check(value); err != nil {
			c.refused = badParameter(name, fmt.Sprintf("the header %s has %v", header, err))
			return nil
		}
		value, plain = urlpath.Clean(value), urlpath.Plain(value)
	}
	if n := max(len(value), len(plain)); n > maxHeader {
		c.refused = badParameter(name, fmt.Sprintf("the header %s has %d bytes, more than %d", header, n, maxHeader))
		return nil
	}
	if c.attrs = append(c.attrs, weir.Attribute{Name: attribute, Value: value}); plain != value {
		c.plain = plain
	}
	return nil
}

// choosePath makes the path the stricter one of the two forms that it has for servers. If none is stricter, it is refused: a
// client could choose what holds.
func (c *gateCall) choosePath() {
	path := &c.attrs[slices.IndexFunc(c.attrs, func(a weir.Attribute) bool { return a.Name == "path" })].Value
	clean, matched := *path, c.matched()
	*path = c.plain
	switch plain := c.matched(); {
	case c.isStricter(matched, plain):
		*path = clean
	case !c.isStricter(plain, matched):
		c.refused = badParameter("header.path", "the path has an escaped slash or a backslash, and other rules hold where that is no slash")
	}
}

// isStricter reports whether a, rules that match, admits nothing that b denies: it has all of b and no further verdict that
// allows, and b is not denied because no rule matches.
func (c *gateCall) isStricter(a, b []int) bool {
	rules := c.rules.Compiled()
	further := slices.DeleteFunc(slices.Clone(a), func(i int) bool { return slices.Contains(b, i) })
	_, allows := rules.Unmatched()
	return len(further)+len(b) == len(a) && !slices.ContainsFunc(further, rules.Allows) && (allows || len(b) > 0 || len(a) == 0)
}

// matched returns the rules that match the attributes so far.
func (c *gateCall) matched() []int {
	rules := c.rules.Compiled()
	values := make([]string, rules.Width())
	for _, a := range c.attrs {
		if i, ok := rules.Attribute(a.Name); ok {
			values[i] = a.Value
		}
	}
	rules.Complete(values)
	return rules.Match(values, nil, false)
}

// fromHeader returns the attribute in a header: the query of a URI as it is, as ip the address of the client, a method in
// capitals, and others as they are.
func (c *gateCall) fromHeader(attribute, header string) string {
	lines := c.request.Header.Values(header)
	value := ""
	if len(lines) > 0 {
		value = lines[len(lines)-1]
	} else if strings.EqualFold(header, "Host") {
		value = c.request.Host
	}
	switch {
	case attribute == "ip":
		peer := c.request.RemoteAddr
		if c.proxies.Trusts(peer) {
			peer = "" // the proxy's own address would be that of all its clients
		}
		value = c.proxies.Client(peer, lines)
	case value == "":
	case attribute == "query":
		_, value, _ = strings.Cut(value, "?")
	case attribute == "method":
		value = strings.ToUpper(value) // as many servers do
	}
	return strings.ToValidUTF8(value, "\uFFFD")
}
