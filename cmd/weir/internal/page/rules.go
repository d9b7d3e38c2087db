package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/findings"
	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/record"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/rulefile"
)

// Rules answers the calls about rules files: it reads, checks, tries and saves them.
type Rules struct {
	// Sources has the rules files.
	Sources Sources

	// Trials runs trials, and Recorder has the requests of the last hour. Recorder may be nil.
	Trials   *trial.Runner
	Recorder *record.Recorder

	// Tokens reports whether callers have tokens. Without them nobody may send a log.
	Tokens bool

	// HideKeys leaves keys out of the results of trials with recorded requests.
	HideKeys bool

	drafts, files *turns // for checks of texts that callers send, and of rules files
}

// Sources has the rules files of namespaces.
type Sources interface {
	// Source returns the rules file of a namespace.
	Source(namespace string) (Source, error)

	// Save makes text the rules file of a namespace, and puts it in force. hash is that of the text that it
	// replaces. The error is a [*answer.Problem] unless the text has faults.
	Save(namespace string, text []byte, hash string, by audit.Caller) (Source, error)
}

// Source is a rules file.
type Source struct {
	// Name is the name of the file in faults, and Path its path. Path is empty for rules that are in no file.
	Name, Path string

	// Text is the content. It is nil for rules of another format, which Format then names.
	Text   []byte
	Format string

	// InForce reports whether these are the rules in force, and not ones that were refused.
	InForce bool

	// ReadOnly says why nobody can save it, or is empty.
	ReadOnly string

	// Lists are the paths of the list files that the rules in force read. bound reports whether the caller is bound to a
	// namespace, and has no others read: those next to the rules file can be of other namespaces.
	Lists []string
	bound bool

	// share is that of the caller; see [access.Holder.Share].
	share string

	// Warnings returns those about the file that concern the service.
	Warnings func(*rulefile.File) []rulefile.Warning
}

// Hash returns the hash of the text.
func (s *Source) Hash() string {
	sum := sha256.Sum256(s.Text)
	return hex.EncodeToString(sum[:])
}

const (
	// MaxText is the maximum size of a rules file that the page checks, tries and saves, in bytes.
	MaxText = 1 << 20

	// mostMarks is the maximum number of characters in a text that can separate values in YAML. Reading a text takes
	// about 700 bytes for each, and ten thousand rules in a megabyte have fewer.
	mostMarks = 300_000

	// Backups is how many earlier versions of a rules file are kept next to it.
	Backups = 3

	// mostLinted is the maximum number of rules in a text whose warnings are looked for, because that reads each rule
	// again and compares it with others.
	mostLinted = 1000

	// mostWarnings is the maximum number of warnings in an answer, as reading stops at so many errors.
	mostWarnings = 1000

	// maxFormat is the maximum size of the description of a log's format, in bytes. Reading one takes memory that grows
	// with the square of its size.
	maxFormat = 16 << 10

	// uploadTime is how long the upload of a log may take.
	uploadTime = 10 * time.Minute
)

// AddTo adds the calls to p.
func (s *Rules) AddTo(p *Page) {
	s.drafts, s.files = newTurns(), newTurns()
	p.Handle(http.MethodGet, prefix+"source", access.Read, s.source)
	p.Handle(http.MethodPut, prefix+"source", access.Admin, s.save)
	p.Handle(http.MethodPost, prefix+"check", access.Read, s.check)
	p.Handle(http.MethodGet, prefix+"try", access.Read, s.tried)
	p.Handle(http.MethodPost, prefix+"try", access.Read, s.try)
	p.Handle(http.MethodDelete, prefix+"try", access.Read, s.cancel)
}

// sourceJSON is a source in an answer.
type sourceJSON struct {
	Name     string             `json:"name"`
	Format   string             `json:"format,omitempty"`
	Text     string             `json:"text"`
	Hash     string             `json:"hash"`
	InForce  bool               `json:"in_force"`
	ReadOnly string             `json:"read_only,omitempty"`
	Backups  int                `json:"backups"`
	Errors   []findings.Finding `json:"errors"`
	Warnings []findings.Finding `json:"warnings"`
}

// source answers with the rules file of a namespace.
func (s *Rules) source(c *Caller, w http.ResponseWriter, r *http.Request) error {
	of, err := s.of(c)
	if err != nil {
		return err
	}
	return s.respond(w, r, &of)
}

// respond answers with a source.
func (s *Rules) respond(w http.ResponseWriter, r *http.Request, of *Source) error {
	a := sourceJSON{Name: of.Name, Format: of.Format, Text: string(of.Text), InForce: of.InForce, ReadOnly: of.ReadOnly, Backups: Backups}
	if a.Errors, a.Warnings = []findings.Finding{}, []findings.Finding{}; of.Text != nil {
		a.Hash = of.Hash()
		w.Header().Set("ETag", `"`+a.Hash+`"`)
		if len(of.Text) <= MaxText {
			checked, err := s.findings(r.Context(), of, of.Text)
			if err != nil {
				return err
			}
			a.Errors, a.Warnings = checked.Errors, checked.Warnings
		}
	}
	return respond(w, a)
}

// given returns the text in the body of r, and the rules file that it is for.
func (s *Rules) given(c *Caller, r *http.Request) (text []byte, of Source, err error) {
	if text, err = readBody(r, MaxText); err == nil {
		of, err = s.of(c)
	}
	return text, of, err
}

// tooMany returns the error about a text that has so many values that reading it takes too much memory.
func tooMany(text []byte) error {
	n := bytes.Count(text, []byte("- "))
	for _, c := range text {
		if strings.IndexByte("[]{},:?#&*!|>'\"%@`", c) >= 0 {
			n++
		}
	}
	if n <= mostMarks {
		return nil
	}
	return &answer.Problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the text has more than %d commas, colons, brackets and the like: put long lists into list files", mostMarks)}
}

// of returns the rules file of the namespace of a call.
func (s *Rules) of(c *Caller) (Source, error) {
	of, err := s.Sources.Source(c.Name)
	of.bound, of.share = !c.Whole(), c.Holder.Share()
	return of, err
}

// save makes the body the rules file.
func (s *Rules) save(c *Caller, w http.ResponseWriter, r *http.Request) error {
	hash := strings.Trim(strings.TrimSpace(r.Header.Get("If-Match")), `"`)
	if hash == "" {
		return &answer.Problem{Status: http.StatusPreconditionRequired, Detail: "the header If-Match with the hash of the text that is replaced is missing"}
	}
	text, of, err := s.given(c, r)
	if err != nil {
		return err
	}
	// The text is checked also while the source is read-only: Save, which reads all lists that it names, may find that this is over.
	checked, err := s.findings(r.Context(), &of, text)
	if err != nil {
		return err
	}
	if len(checked.Errors) > 0 {
		return faulty(checked.Errors)
	}
	if of, err = s.Sources.Save(c.Name, text, hash, c.By); err != nil {
		return err
	}
	return s.respond(w, r, &of)
}

// faulty returns the answer to a text that has errors.
func faulty(errors []findings.Finding) error {
	p := &answer.Problem{Status: http.StatusUnprocessableEntity, Detail: "the text has errors; nothing was changed"}
	for _, f := range errors {
		p.Errors = append(p.Errors, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Problem))
	}
	return p
}

// checkedJSON is what was found in a text.
type checkedJSON struct {
	Errors   []findings.Finding `json:"errors"`
	Warnings []findings.Finding `json:"warnings"`
	Rules    int                `json:"rules"`

	// Unlinted reports that no warnings were looked for, because the text has so many rules.
	Unlinted bool `json:"unlinted,omitempty"`
}

// check answers with what weir check finds in the body.
func (s *Rules) check(c *Caller, w http.ResponseWriter, r *http.Request) error {
	text, of, err := s.given(c, r)
	if err != nil {
		return err
	}
	checked, err := s.findings(r.Context(), &of, text)
	if err != nil {
		return err
	}
	return respond(w, checked)
}

// findings checks text as the rules file of. A text can be made so that it takes long: callers of one share wait for each
// other, and who reads a rules file does not wait for checks of other texts. Any text but that of the file has at most
// [mostMarks].
func (s *Rules) findings(ctx context.Context, of *Source, text []byte) (*checkedJSON, error) {
	turns := s.files
	if !bytes.Equal(text, of.Text) {
		if err := tooMany(text); err != nil {
			return nil, err
		}
		turns = s.drafts
	}
	end, err := turns.wait(ctx, of.share)
	if err != nil {
		return nil, err
	}
	defer end()
	c := &checkedJSON{Errors: []findings.Finding{}, Warnings: []findings.Finding{}}
	file, err := rulefile.Parse(of.Name, text, of.lists())
	if err != nil {
		c.Errors = findings.Errors(err)
		return c, nil
	}
	if c.Rules = file.Set.Len(); c.Rules > mostLinted {
		c.Unlinted = true
		return c, nil
	}
	warnings := of.Warnings(file)
	c.Warnings = findings.Warnings(warnings[:min(len(warnings), mostWarnings)])
	return c, nil
}

// lists returns a function that reads the list files that a text names. The text comes from the network, and faults repeat
// lines, so only files that the rules in force read, and others in the directory of the rules file, are read. Each is read
// as often as the rules in force do, or once, because a text of a megabyte can name thousands of lists.
func (s *Source) lists() func(path string) ([]byte, error) {
	most := map[string]int{} // how often each file may still be read
	for _, path := range s.Lists {
		most[path]++
	}
	return func(path string) ([]byte, error) {
		if s.Path == "" {
			return nil, errors.New("the rules are in no file, so there are no list files next to it")
		}
		full := files.RelativeTo(s.Path, path)
		known, err := filepath.Abs(full)
		if err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(s.Lists, known):
		case s.bound:
			return nil, errors.New("no rule in force reads it, and callers who are bound to a namespace can name no other lists")
		case !filepath.IsLocal(path):
			return nil, errors.New("is not in the directory of the rules file, and no rule in force reads it, so the page does not either")
		}
		if left, ok := most[known]; ok && left == 0 {
			return nil, errors.New("is the file of another list, too: name one list in both places")
		}
		most[known] = max(most[known]-1, 0)
		text, err := files.List(full)
		if err == nil && files.HoldsSecrets(text) {
			return nil, errors.New("holds keys or tokens, and no list")
		}
		return text, err
	}
}

// triedJSON is the state of trials in an answer.
type triedJSON struct {
	// Recording describes the recorded requests; null without --record.
	Recording *record.Recording `json:"recording"`

	// Upload reports whether the caller may send a log of at most MaxLog bytes, in one of Formats.
	Upload  bool               `json:"upload"`
	MaxLog  int64              `json:"max_log"`
	Formats []logs.Description `json:"formats"`

	// Trial is the last trial of the caller in the namespace, or null. It is last because its result follows.
	Trial *trial.Status `json:"trial"`
}

// tried answers with the last trial of the caller.
func (s *Rules) tried(c *Caller, w http.ResponseWriter, _ *http.Request) error {
	a := triedJSON{Upload: s.mayUpload(c) == nil, MaxLog: trial.MaxLog, Formats: logs.Described()}
	if s.Recorder != nil {
		state := s.Recorder.State(c.Name)
		a.Recording = &state
	}
	last, ok := s.Trials.Status(c.Name, c.By.Token)
	if ok {
		a.Trial = &last
	}
	if last.Result == nil {
		return respond(w, a)
	}
	// A result can have megabytes, and readers can be slow: it is not copied into the answer.
	head, err := json.Marshal(a)
	if err != nil {
		return err
	}
	const key, tail = `,"result":`, "}}"
	head = append(bytes.TrimSuffix(head, []byte(tail)), key...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.FormatInt(int64(len(head)+len(tail))+last.Result.Size(), 10)) // an answer that ends early is an error for its reader
	_, _ = io.Copy(w, io.MultiReader(bytes.NewReader(head), last.Result, strings.NewReader(tail)))
	return nil
}

// mayUpload returns the refusal of a caller that may not send logs.
func (s *Rules) mayUpload(c *Caller) error {
	if !s.Tokens {
		return errReadsOnly
	}
	return c.May(access.Admin)
}

// jobJSON is what a caller wants to try.
type jobJSON struct {
	// Text is the changed rules.
	Text string `json:"text"`

	// Rules are the limits for which other quotas are measured.
	Rules []string `json:"rules"`

	// Recorded tries the recorded requests. Otherwise a log follows in the body, whose name is Log, in the format
	// that Format describes.
	Recorded bool            `json:"recorded"`
	Log      string          `json:"log"`
	Format   json.RawMessage `json:"format"`
}

// try begins a trial. The body is a form: job, and then log, which is a file.
func (s *Rules) try(c *Caller, w http.ResponseWriter, r *http.Request) error {
	body := &partsBody{ReadCloser: r.Body, left: maxPartHead}
	limited := r.WithContext(r.Context())
	limited.Body = body
	form, err := limited.MultipartReader()
	if err != nil {
		return &answer.Problem{Status: http.StatusUnsupportedMediaType, Detail: "want a form with the parts job and log: " + err.Error()}
	}
	var asked jobJSON
	if err := readJob(form, body, &asked); err != nil {
		return err
	}
	if !asked.Recorded {
		if err := s.mayUpload(c); err != nil {
			return err
		}
	}
	of, err := s.of(c)
	if err != nil {
		return err
	}
	job, err := s.job(r.Context(), &of, &asked)
	if err != nil {
		return err
	}
	write := func(ctx context.Context, w io.Writer) error {
		_, err := s.Recorder.Write(w, c.Name, func() error { return context.Cause(ctx) })
		return err
	}
	if !asked.Recorded {
		// The listener's time-outs are for calls of a megabyte. Over HTTP/2 a deadline of the answer would reset the stream.
		to := http.NewResponseController(w)
		_, _ = to.SetReadDeadline(time.Now().Add(uploadTime)), to.SetWriteDeadline(time.Time{})
		defer func() { _ = to.SetWriteDeadline(time.Now().Add(streamWrite)) }()
		write = func(_ context.Context, w io.Writer) error { return readLog(form, body, w) }
	} else if s.Recorder == nil {
		return &answer.Problem{Status: http.StatusConflict, Detail: "requests are not recorded: start weir serve with --record 64MiB, or try a log"}
	}
	status, err := s.Trials.Start(trial.Status{Namespace: c.Name, By: c.By.Token}, c.Holder.Share(), job, write)
	switch {
	case errors.Is(err, trial.ErrBusy):
		return &answer.Problem{Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, trial.ErrTooLarge):
		return &answer.Problem{Status: http.StatusRequestEntityTooLarge, Detail: err.Error()}
	case err != nil:
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return respond(w, status)
}

// job returns what a worker runs. The texts have no errors.
func (s *Rules) job(ctx context.Context, of *Source, asked *jobJSON) (*trial.Job, error) {
	if of.Text == nil {
		return nil, &answer.Problem{Status: http.StatusConflict, Detail: "the rules are not in a rules file of weir, so there is nothing to compare with"}
	}
	if len(asked.Rules) > trial.MostRules {
		return nil, &answer.Problem{Status: http.StatusBadRequest, Field: "rules", Detail: fmt.Sprintf("%d of them: want at most %d", len(asked.Rules), trial.MostRules)}
	}
	if len(asked.Text) > MaxText {
		return nil, &answer.Problem{Status: http.StatusRequestEntityTooLarge, Field: "text", Detail: fmt.Sprintf("has more than %d bytes", MaxText)}
	}
	for _, text := range [][]byte{of.Text, []byte(asked.Text)} {
		checked, err := s.findings(ctx, of, text)
		if err != nil {
			return nil, err
		}
		if len(checked.Errors) > 0 {
			return nil, faulty(checked.Errors)
		}
	}
	job := &trial.Job{File: of.fileOfLists(), Before: string(of.Text), After: asked.Text, Rules: asked.Rules, Log: asked.Log, Format: asked.Format}
	if asked.Recorded {
		job.Log, job.Format, job.HideKeys = "recorded requests", json.RawMessage(`{"format":"weir"}`), s.HideKeys
		return job, nil
	}
	if len(job.Format) == 0 {
		job.Format = json.RawMessage("{}")
	}
	if len(job.Format) > maxFormat {
		return nil, &answer.Problem{Status: http.StatusRequestEntityTooLarge, Field: "format", Detail: fmt.Sprintf("has more than %d bytes", maxFormat)}
	}
	if _, err := logs.Parse("format", job.Format); err != nil {
		return nil, &answer.Problem{Status: http.StatusBadRequest, Field: "format", Detail: err.Error()}
	}
	return job, nil
}

// fileOfLists returns the name that list files are relative to.
func (s *Source) fileOfLists() string { return cmp.Or(s.Path, s.Name) }

// partsBody is the body of a form, of which a number of bytes may still be read. The head of a part is kept in memory whole.
type partsBody struct {
	io.ReadCloser
	left int64
}

// maxPartHead is the maximum size of what is in front of a part of a form, in bytes.
const maxPartHead = 16 << 10

var errPartHead = errors.New("the head of a part is too large")

// Read implements [io.Reader].
func (b *partsBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errPartHead
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// readJob reads the first part of a form, which is in body.
func readJob(form *multipart.Reader, body *partsBody, to *jobJSON) error {
	part, err := form.NextPart()
	if err != nil {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the form did not arrive: " + err.Error()}
	}
	if part.FormName() != "job" {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the first part of the form is not job"}
	}
	const most = 2*MaxText + 64<<10 // JSON writes a line feed as two characters
	body.left = most + maxPartHead
	text, err := io.ReadAll(io.LimitReader(part, most+1))
	if err != nil {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the form did not arrive: " + err.Error()}
	}
	if len(text) > most {
		return &answer.Problem{Status: http.StatusRequestEntityTooLarge, Field: "job", Detail: fmt.Sprintf("has more than %d bytes", most)}
	}
	if err := json.Unmarshal(text, to); err != nil {
		return &answer.Problem{Status: http.StatusBadRequest, Field: "job", Detail: err.Error()}
	}
	return nil
}

// readLog writes the log in a form, which is in body, to w.
func readLog(form *multipart.Reader, body *partsBody, w io.Writer) error {
	body.left = maxPartHead
	part, err := form.NextPart()
	body.left = math.MaxInt64
	if err == nil && part.FormName() != "log" {
		err = errors.New("its second part is not log")
	}
	if err != nil {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the form has no log: " + err.Error()}
	}
	_, err = io.CopyBuffer(onlyWriter{w}, part, make([]byte, 64<<10))
	var broken net.Error
	if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &answer.Problem{Status: http.StatusBadRequest, Detail: "the log did not arrive: " + err.Error()}
	}
	return err
}

// onlyWriter hides ReadFrom of a writer.
type onlyWriter struct{ io.Writer }

// cancel ends the trial of the caller, or forgets its result.
func (s *Rules) cancel(c *Caller, w http.ResponseWriter, _ *http.Request) error {
	if err := s.Trials.Cancel(c.Name, c.By.Token); err != nil {
		return &answer.Problem{Status: http.StatusNotFound, Detail: err.Error()}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
