package page

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

const (
	// sessionPath is the path of the calls about who reads the page.
	sessionPath = prefix + "session"

	// cookieName is the name of the cookie that has the token.
	cookieName = "weir_token"

	// pageHeader is a header that only scripts can send, and only to their own origin.
	pageHeader = "X-Weir-Page"

	maxSessionBody = 4 << 10

	// maxNamespaces is how many names of namespaces a session lists.
	maxNamespaces = 1000
)

var (
	errNotFromPage = &answer.Problem{Status: http.StatusForbidden, Detail: "the call changes something, and does not come from weir's page: send " + pageHeader + ": 1, or a token in Authorization"}
	errReadsOnly   = &answer.Problem{Status: http.StatusForbidden, Detail: "without tokens the page only reads: start weir serve with --tokens FILE or WEIR_TOKEN (weir token new makes a token)"}
)

// fromPage reports whether the page makes a request, and not a form or a link of another page.
func fromPage(r *http.Request) bool { return r.Header.Get(pageHeader) == "1" }

// signsIn reports whether callers have tokens.
func (p *Page) signsIn() bool { return p.c.Auth != nil && p.c.Auth.Keys != nil }

// adopt returns r with the token of its cookie, if it has no other credentials. A call that could change
// something must then come from the page, because browsers send cookies for other pages, too.
func (p *Page) adopt(r *http.Request) (*http.Request, error) {
	if len(r.Header["Authorization"]) > 0 {
		return r, nil
	}
	token, ok := tokenOf(r)
	if !ok {
		return r, nil
	}
	if access.CrossOrigin(r) {
		return nil, p.c.Auth.Foreign()
	}
	if !reads(r) && !fromPage(r) {
		return nil, errNotFromPage
	}
	r = r.WithContext(r.Context()) // a copy
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer "+token)
	return r, nil
}

// Credentials returns what the caller of r shows, also in the cookie of p, which may be nil.
func (p *Page) Credentials(r *http.Request) access.Credentials {
	c := access.CredentialsOf(r)
	if p != nil && len(r.Header["Authorization"]) == 0 {
		if token, ok := tokenOf(r); ok {
			c.Token, c.Shown = token, true
		}
	}
	return c
}

// tokenOf returns the token in the cookie of r.
func tokenOf(r *http.Request) (token string, ok bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	return string(text), err == nil && len(text) > 0
}

// looks lists calls below /v1/ that change nothing although they are not GET.
var looks = map[string]bool{"/v1/explain": true, "/v1/check": true}

// Forward makes to answer a call below /v1/, whose path without a namespace is given, for the page and for
// other callers. A nil Page forwards the call as it is.
func (p *Page) Forward(to http.Handler, path string, w http.ResponseWriter, r *http.Request) {
	if p != nil {
		if fromPage(r) && !reads(r) && !looks[path] && !p.signsIn() {
			answer.Refuse(w, r, errReadsOnly)
			return
		}
		adopted, err := p.adopt(r)
		if err != nil {
			answer.Refuse(w, r, err)
			return
		}
		r = adopted
	}
	to.ServeHTTP(w, r)
}

// Session is the answer to the question who reads the page.
type Session struct {
	Version string `json:"version"`
	API     string `json:"api"`

	// Since is when the service began, in seconds since 1970.
	Since int64 `json:"since"`

	// Tokens reports whether callers have tokens; without them the page only reads. SignedIn reports
	// whether the reader may see anything.
	Tokens   bool `json:"tokens"`
	SignedIn bool `json:"signed_in"`

	// Name and Scopes are those of the token, and Namespace the only one that it may use.
	Name      string   `json:"name,omitempty"`
	Scopes    []string `json:"scopes"`
	Namespace string   `json:"namespace,omitempty"`

	// Write reports whether the reader may save rules.
	Write bool `json:"write"`

	// Namespaces are those that the reader may choose from, at most maxNamespaces.
	Namespaces []string `json:"namespaces"`
}

// session answers who reads the page, signs in and signs out.
func (p *Page) session(w http.ResponseWriter, r *http.Request) error {
	if !reads(r) && !fromPage(r) {
		return errNotFromPage
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		token, err := p.signIn(r)
		if err != nil {
			return err
		}
		p.setCookie(w, token)
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	case http.MethodDelete:
		p.setCookie(w, "")
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		return notAllowed(r, http.MethodDelete, http.MethodGet, http.MethodPost)
	}
	s, err := p.sessionOf(w, r)
	if err != nil {
		return err
	}
	return respond(w, s)
}

// signIn returns the token in the body of r, which is in force.
func (p *Page) signIn(r *http.Request) (token string, err error) {
	if !p.signsIn() {
		return "", &answer.Problem{Status: http.StatusConflict, Detail: "the service has no tokens, so nobody needs to sign in"}
	}
	var body struct {
		Token string `json:"token"`
	}
	if err := readJSON(r, maxSessionBody, &body); err != nil {
		return "", err
	}
	token = strings.TrimSpace(body.Token)
	if token == "" {
		return "", &answer.Problem{Status: http.StatusBadRequest, Field: "token", Detail: "is missing"}
	}
	c := access.CredentialsOf(r)
	c.Token, c.Shown = token, true
	_, err = p.c.Auth.Authenticate(c, access.None)
	return token, err
}

// setCookie makes the browser keep a token until it ends, or forget it if the token is empty.
func (p *Page) setCookie(w http.ResponseWriter, token string) {
	c := http.Cookie{
		Name: cookieName, Value: base64.RawURLEncoding.EncodeToString([]byte(token)), Path: "/",
		HttpOnly: true, Secure: p.c.Secure, SameSite: http.SameSiteStrictMode,
	}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, &c)
}

// sessionOf returns who makes r. A token that is not in force any more is forgotten.
func (p *Page) sessionOf(w http.ResponseWriter, r *http.Request) (*Session, error) {
	s := &Session{Version: p.c.Version, Since: p.began.Unix(), Tokens: p.signsIn(), Scopes: []string{}, Namespaces: []string{}}
	r, err := p.adopt(r)
	if err != nil {
		return nil, err
	}
	c := access.CredentialsOf(r)
	if s.Tokens && !c.Shown && c.Certificate == nil {
		return s, nil
	}
	h, err := p.c.Auth.Authenticate(c, access.None)
	var no *access.Refusal
	switch {
	case errors.As(err, &no) && s.Tokens && no.Reason == access.Unknown:
		p.setCookie(w, "")
		return s, nil
	case errors.As(err, &no) && s.Tokens && no.Reason == access.Missing: // a certificate that is not known
		return s, nil
	case err != nil:
		return nil, err
	}
	s.SignedIn, s.API, s.Scopes, s.Namespace = true, p.c.API, strings.Split(h.Scopes.String(), ","), h.Namespace
	if s.Tokens {
		s.Name = h.Name
	}
	s.Write = p.c.Write && s.Tokens && h.Scopes.Has(access.Admin)
	for _, n := range p.namespaces(h) {
		s.Namespaces = append(s.Namespaces, n.Name())
	}
	return s, nil
}

// namespaces returns the namespaces that h may use, at most maxNamespaces.
func (p *Page) namespaces(h *access.Holder) (all []*namespace.Namespace) {
	for _, n := range p.c.Namespaces.All() {
		if h.Namespace == "" || h.Namespace == n.Name() {
			all = append(all, n)
		}
	}
	return all[:min(len(all), maxNamespaces)]
}

// readJSON reads the body of r, which is JSON of at most a number of bytes, into to. Members that to
// does not have are an error.
func readJSON(r *http.Request, most int64, to any) error {
	body, err := readBody(r, most)
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the body is not the JSON that is expected: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the body has something after the JSON"}
	}
	return nil
}

// readBody reads the body of r, which has at most a number of bytes.
func readBody(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &answer.Problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", most)}
	}
	if err != nil {
		return nil, &answer.Problem{Status: http.StatusBadRequest, Detail: "the body did not arrive: " + err.Error()}
	}
	return body, nil
}

// respond writes v as JSON.
func respond(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // an error means that the reader is gone
	return nil
}
