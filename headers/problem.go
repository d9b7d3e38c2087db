package headers

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/jsontext"
)

// Problem types of draft-ietf-httpapi-ratelimit-headers-10.
const (
	// quotaExceeded is the type of a denial by a limit.
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

	// reducedCapacity is the type of a denial by an outage policy.
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

	// abnormalUsage is the type of a denial by a ban.
	abnormalUsage = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
)

// Problem is the body of a denial, as RFC 9457 defines it. The zero value is a
// problem of the type about:blank with the status 429.
type Problem struct {
	// Type is a URI; empty means about:blank. [Denial] and [DenialBy] give the types of
	// draft-ietf-httpapi-ratelimit-headers-10.
	Type string

	// Status is the HTTP status; 0 means 429.
	Status int

	// Detail says which limit denied, for people.
	Detail string

	// Policies names the limits that are exceeded: the member violated-policies.
	Policies []string
}

// Denial returns the problem of a denial by the rules of an engine. status is the
// HTTP status; 0 means 429.
func Denial(d *weir.Decision, status int) *Problem {
	p := &Problem{Status: status, Detail: "denied by rule " + d.Rule}
	if d.Rule == "" {
		p.Detail = "denied: no rule matches the request"
	}
	found := false
	for i := range d.Usages {
		u := &d.Usages[i]
		if u.Rule == d.Rule {
			found = true
			p.Type = typeOf(u.Banned)
		}
		if decides(d, u) && u.RetryAfter != 0 {
			p.Policies = append(p.Policies, u.Rule)
		}
	}
	if !found && d.Rule != "" && !slices.Contains(d.Verdicts, d.Rule) { // a limit without numbers
		p.Type, p.Policies = reducedCapacity, []string{d.Rule}
	}
	return p
}

// DenialBy returns the problem of a denial by the named limit, with the status 429, or by
// its outage policy, with the status 503.
func DenialBy(limit string, outage bool) *Problem {
	p := &Problem{Type: quotaExceeded, Status: http.StatusTooManyRequests, Detail: "denied by limit " + limit, Policies: []string{limit}}
	if outage {
		p.Type, p.Status = reducedCapacity, http.StatusServiceUnavailable
	}
	return p
}

func typeOf(banned bool) string {
	if banned {
		return abnormalUsage
	}
	return quotaExceeded
}

// Append appends p as a JSON object.
func (p *Problem) Append(b []byte) []byte {
	kind, status := p.Type, p.status()
	if kind == "" {
		kind = "about:blank"
	}
	b = jsontext.AppendText(append(b, `{"type":`...), kind)
	b = jsontext.AppendText(append(b, `,"title":`...), http.StatusText(status))
	b = strconv.AppendInt(append(b, `,"status":`...), int64(status), 10)
	if p.Detail != "" {
		b = jsontext.AppendText(append(b, `,"detail":`...), p.Detail)
	}
	if p.Policies != nil {
		b = jsontext.AppendTexts(append(b, `,"violated-policies":`...), p.Policies)
	}
	return append(b, '}')
}

func (p *Problem) status() int {
	if p.Status == 0 {
		return http.StatusTooManyRequests
	}
	return p.Status
}

// Write writes p as the answer to a request, with the media type
// application/problem+json.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header()["Content-Type"] = []string{"application/problem+json"}
	w.WriteHeader(p.status())
	var room [512]byte
	_, _ = w.Write(append(p.Append(room[:0]), '\n')) // the caller has gone if this fails
}
