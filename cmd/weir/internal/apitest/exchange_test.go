package apitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/apitest"
)

// take is an exchange as the description has it.
func take() *apitest.Exchange {
	return &apitest.Exchange{
		Method: "POST", URL: "/v1/take", Header: http.Header{}, Body: `{"attributes": {"user": 42}, "hits": 2}`,
		Status: 200, Got: http.Header{"Content-Type": {"application/json"}},
		Answer: `{"allowed":true,"outcome":"allow","limits":[{"rule":"posts","key":"42","quota":5,"used":2,"remaining":3,"reset_after":3600}]}`,
	}
}

// answers returns a change that replaces a part of the answer.
func answers(old, new string) func(*apitest.Exchange) {
	return func(x *apitest.Exchange) { x.Answer = strings.Replace(x.Answer, old, new, 1) }
}

// TestFaults shows that each kind of difference from the description is found.
func TestFaults(t *testing.T) {
	t.Parallel()
	d := apitest.Load(t)
	if faults := d.Faults(t, take()); len(faults) > 0 {
		t.Fatalf("got %v, want no fault", faults)
	}
	for want, change := range map[string]func(*apitest.Exchange){
		"missing property 'outcome'":                        answers(`"outcome":"allow",`, ""),
		"at '/colour': false schema":                        answers(`"outcome"`, `"colour":"red","outcome"`),
		"at '/limits/0/rest': false schema":                 answers(`"used"`, `"rest":1,"used"`),
		"want string":                                       answers(`"allow"`, "1"),
		"value must be true":                                answers(`"limits"`, `"unmatched":false,"limits"`),
		"missing property 'retry_after'":                    answers("true", "false"),
		"'/retry_after': false schema":                      answers(`"limits"`, `"retry_after":3,"limits"`),
		"missing properties 'quota', 'remaining'":           answers(`"quota":5,"used":2,"remaining":3`, `"used":2`),
		"is not valid date-time":                            answers(`"used"`, `"banned_until":"tomorrow","used"`),
		"properties 'degraded_reason' required":             answers(`"limits"`, `"degraded":true,"limits"`),
		"does not have this status":                         func(x *apitest.Exchange) { x.Status = 418 },
		"no such path":                                      func(x *apitest.Exchange) { x.URL = "/v1/taken" },
		"no such method":                                    func(x *apitest.Exchange) { x.Method = "PUT" },
		"does not have the header Weir-Mood":                func(x *apitest.Exchange) { x.Got.Set("Weir-Mood", "good") },
		"got content type text/plain":                       func(x *apitest.Exchange) { x.Got.Set("Content-Type", "text/plain") },
		"a body without a content type":                     func(x *apitest.Exchange) { x.Got.Del("Content-Type") },
		"additional properties 'colour' not allowed":        func(x *apitest.Exchange) { x.Body = `{"attributes": {}, "colour": "red"}` },
		"at '/hits': maximum":                               func(x *apitest.Exchange) { x.Body = `{"attributes": {}, "hits": 9007199254740992}` },
		"the parameter n was accepted, and the description": func(x *apitest.Exchange) { x.URL += "?n=1" },
		"the parameter Weir-Namespace was accepted":         func(x *apitest.Exchange) { x.Header.Set("Weir-Namespace", "a b") },
		"the call was accepted without the parameter rule":  func(x *apitest.Exchange) { x.Method, x.URL = "DELETE", "/v1/usage"; x.Status = 204 },
		"got Allow: GET, and the description has POST":      func(x *apitest.Exchange) { x.Method, x.Status = "GET", 405; x.Got.Set("Allow", "GET") },
		"header Retry-After":                                func(x *apitest.Exchange) { x.Status = 503; x.Got.Set("Retry-After", "0") },
		"value must be one of 'late', 'refused'":            answers(`"limits"`, `"degraded":true,"degraded_reason":"tired","limits"`),
	} {
		x := take()
		change(x)
		if got := strings.Join(d.Faults(t, x), "\n"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
