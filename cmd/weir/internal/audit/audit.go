// Package audit records who changed what: overrides, forgotten keys, rules. The newest entries of each
// namespace are kept where the counters are, and all are in the log.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/sharedlog"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Action is what was done. Its text is part of the API.
type Action string

// Actions.
const (
	OverrideSet     Action = "override-set"
	OverrideRemoved Action = "override-removed"
	Forget          Action = "forget"
	CountSet        Action = "count-set"
	BanLifted       Action = "ban-lifted"
	RulesChanged    Action = "rules-changed"
	RulesRefused    Action = "rules-refused" // a reload failed
)

// Caller is who did it.
type Caller struct {
	Token   string `json:"token,omitempty"`   // its name; empty without authentication
	Address string `json:"address,omitempty"` // empty for what the service did by itself
}

// Entry is one change.
type Entry struct {
	Time   time.Time `json:"time"`
	Action Action    `json:"action"`
	By     Caller    `json:"by"`

	Rule       string            `json:"rule,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // of the key

	// Before and After are JSON, or nil: what was there, and what is now.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

const (
	// Size is how many entries of a namespace are kept.
	Size = sharedlog.Size

	// MaxAsked is how many a caller may ask for.
	MaxAsked = 1000

	// maxText bounds what was before and after in one entry, and maxBytes the entries of all
	// namespaces in memory: when there are more, the namespace with most loses its oldest.
	maxText  = 8 << 10
	maxBytes = 64 << 20

	maxUnsent = 1000 // entries that wait for a store
	sendMost  = 128
	sendEvery = time.Second
	sendTime  = 2 * time.Second
)

// Config configures a [Trail]. Its zero value keeps entries in memory.
type Config struct {
	// Remote and Side keep the entries; at most one of them is set.
	Remote sharedlog.Log
	Side   hook.SideStore

	// Log gets all entries.
	Log *slog.Logger

	// HideKeys keeps keys out of Log, and with them what they had before and after.
	HideKeys bool

	// Now returns the time. Nil: time.Now.
	Now func() time.Time
}

// Trail records entries. Make one with [New]. It is safe for concurrent use; a nil one records
// nothing.
type Trail struct {
	c     Config
	end   func()
	added chan struct{} // has room for one: there are entries to send

	readers sync.Map // one caller of each namespace at a time lists entries, which can take megabytes; see [remote.Turn]

	mu     sync.Mutex
	loaded bool              // the entries of the last process are known; guarded by mu
	spaces map[string]*trail // by namespace; guarded by mu
	unsent int               // guarded by mu
	bytes  int               // of all entries; guarded by mu
}

// trail has the entries of one namespace: those that wait for the store, or, without one, the newest.
type trail struct {
	entries []string // the oldest first
	bytes   int      // of them
	first   int      // the number of entries[0], since the first one ever
	saved   int      // those before this number were written
	dropped int      // those before this number are not on disk any more
}

// New returns a trail.
func New(c Config) *Trail {
	if c.Now == nil {
		c.Now = time.Now
	}
	t := &Trail{c: c, added: make(chan struct{}, 1), spaces: map[string]*trail{}}
	if c.Side != nil {
		t.end = c.Side.Follow(t.save)
	}
	return t
}

// Add records that something was done now in a namespace. In a side store, what a caller did is written when Add returns,
// and what the service did by itself if the store writes before it answers.
func (t *Trail) Add(namespace string, e Entry) {
	if t == nil {
		return
	}
	if t.add(namespace, e); t.c.Side != nil && (e.By != Caller{} || t.c.Side.Waits()) {
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		defer cancel()
		_ = t.c.Side.Flush(ctx) // it is in the log
	}
}

func (t *Trail) add(namespace string, e Entry) {
	e.Time = t.c.Now().UTC().Truncate(time.Microsecond)
	if len(e.Before)+len(e.After) > maxText {
		e.Before, e.After = nil, nil
	}
	t.log(namespace, &e)
	text, err := json.Marshal(&e)
	if err != nil {
		return // unreachable: all parts are valid
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c.Remote == nil {
		t.append(t.of(namespace), string(text))
		t.trim()
		return
	}
	if t.unsent < maxUnsent && t.bytes+len(text) <= maxBytes { // otherwise it is in the log only
		t.append(t.of(namespace), string(text))
		t.unsent++
	}
	select {
	case t.added <- struct{}{}:
	default: // Run sends this entry, too
	}
}

// of returns the trail of a namespace. It needs mu.
func (t *Trail) of(namespace string) *trail {
	s := t.spaces[namespace]
	if s == nil {
		s = &trail{}
		t.spaces[namespace] = s
	}
	return s
}

// append adds entries to s. It needs mu.
func (t *Trail) append(s *trail, entries ...string) {
	for _, text := range entries {
		s.bytes, t.bytes = s.bytes+len(text), t.bytes+len(text)
	}
	if s.entries = append(s.entries, entries...); t.c.Remote == nil && len(s.entries) > Size {
		t.drop(s, len(s.entries)-Size)
	}
}

// drop drops the oldest n entries of s. It needs mu.
func (t *Trail) drop(s *trail, n int) {
	for _, text := range s.entries[:n] {
		s.bytes, t.bytes = s.bytes-len(text), t.bytes-len(text)
	}
	s.entries, s.first = slices.Delete(s.entries, 0, n), s.first+n
}

// trim drops entries until there are at most maxBytes. It needs mu.
func (t *Trail) trim() {
	for t.bytes > maxBytes {
		most := &trail{}
		for _, s := range t.spaces {
			if s.bytes > most.bytes {
				most = s
			}
		}
		t.drop(most, 1)
	}
}

// log logs an entry.
func (t *Trail) log(namespace string, e *Entry) {
	if t.c.Log == nil {
		return
	}
	fields := []any{"action", string(e.Action), "namespace", namespace}
	for _, f := range [...]struct{ name, value string }{{"token", e.By.Token}, {"address", e.By.Address}, {"rule", e.Rule}} {
		if f.value != "" {
			fields = append(fields, f.name, f.value)
		}
	}
	if !t.c.HideKeys || len(e.Attributes) == 0 { // without a key there is nothing to hide
		for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
			fields = append(fields, "attributes."+name, e.Attributes[name])
		}
		for _, f := range [...]struct {
			name string
			text json.RawMessage
		}{{"before", e.Before}, {"after", e.After}} {
			if len(f.text) > 0 {
				fields = append(fields, f.name, string(f.text))
			}
		}
	}
	t.c.Log.Info("audit", fields...)
}

// Run sends entries to the store as they are added, and again those that it did not take, until ctx is done.
func (t *Trail) Run(ctx context.Context) {
	if t == nil || t.c.Remote == nil {
		return
	}
	tick := time.Tick(sendEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-t.added:
		}
		_ = t.send(ctx) // it is tried again
	}
}

// Close sends or writes the entries that wait. It must be called before the store is closed.
func (t *Trail) Close() {
	if t == nil {
		return
	}
	if t.end != nil {
		t.end()
	}
	if t.c.Remote != nil {
		_ = t.send(context.Background()) // they are in the log
	}
}

// remoteName returns the name of the log of a namespace.
func remoteName(namespace string) string { return "audit/" + namespace }

// send sends the entries that wait. The store adds each of them once.
func (t *Trail) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(remote.WithTimeout(ctx, sendTime), 2*sendTime)
	defer cancel()
	var failed error
	for _, namespace := range t.waiting() {
		for {
			some := t.some(namespace, sendMost)
			if len(some) == 0 {
				break
			}
			at := make([]window.Instant, len(some))
			for i, text := range some {
				at[i] = window.At(parse(text).Time)
			}
			if _, err := t.c.Remote(ctx, remoteName(namespace), window.MaxLength, at, some, 0, 0); err != nil {
				failed = errors.Join(failed, err)
				break
			}
			t.sent(namespace, some)
		}
	}
	return failed
}

// waiting returns the namespaces with entries that wait.
func (t *Trail) waiting() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.spaces))
}

// some returns the oldest entries of a namespace, at most so many.
func (t *Trail) some(namespace string, most int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spaces[namespace]
	if s == nil {
		return nil
	}
	return slices.Clone(s.entries[:min(len(s.entries), most)])
}

// sent drops entries that the store has, unless another call has sent and dropped them.
func (t *Trail) sent(namespace string, some []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spaces[namespace]
	if s == nil {
		return
	}
	n := 0
	for n < len(some) && n < len(s.entries) && s.entries[n] == some[n] {
		n++
	}
	t.drop(s, n)
	if t.unsent -= n; len(s.entries) == 0 {
		delete(t.spaces, namespace)
	}
}

// parse reads an entry. One that another version has written has the zero time.
func parse(text string) (e Entry) {
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Entry{}
	}
	return e
}

// Found is an answer of [Trail.List].
type Found struct {
	Entries  []Entry // the newest one first
	Degraded bool    // the store does not answer: these are the entries that wait for it
}

// List returns the newest n entries of a namespace that are not after until, if that is not zero.
func (t *Trail) List(ctx context.Context, namespace string, n int, until time.Time) (f Found, err error) {
	if t == nil {
		return f, nil
	}
	end, err := remote.Turn(ctx, &t.readers, namespace)
	if err != nil {
		return f, err
	}
	defer end()
	var kept []string // by the store
	if t.c.Remote != nil {
		reading, cancel := context.WithTimeout(remote.WithTimeout(ctx, sendTime), sharedlog.Time)
		defer cancel()
		most := n
		if !until.IsZero() {
			most = Size
		}
		left := n
		_, err := t.c.Remote.Newest(reading, remoteName(namespace), most, new(export.Pace), func(text string) bool {
			if e := parse(text); until.IsZero() || !e.Time.After(until) {
				kept = append(kept, text)
				left--
			}
			return left > 0
		})
		if err != nil {
			if ctx.Err() != nil {
				return f, err
			}
			f.Degraded, kept = true, nil
		}
	}
	t.mu.Lock()
	t.load()
	t.mu.Unlock()
	own := t.some(namespace, Size)
	slices.Reverse(own)
	seen := map[string]bool{} // an entry can be sent meanwhile
	for _, texts := range [...][]string{own, kept} {
		left := n
		for _, text := range texts {
			if e := parse(text); left > 0 && !seen[text] && !e.Time.IsZero() && (until.IsZero() || !e.Time.After(until)) {
				f.Entries = append(f.Entries, e)
				seen[text] = true
				left--
			}
		}
	}
	slices.SortStableFunc(f.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time) })
	f.Entries = f.Entries[:min(n, len(f.Entries))]
	return f, nil
}

// blobPrefix begins the names of blobs in a side store.
const blobPrefix = "audit/"

// chunk is how many entries one blob has.
const chunk = 100

// load reads the entries of the last process, when the side store is loaded. It needs mu.
func (t *Trail) load() {
	if t.c.Side == nil || t.loaded {
		return
	}
	select {
	case <-t.c.Side.Loaded():
	default:
		return
	}
	t.loaded = true
	found := map[string]map[int][]string{}
	t.c.Side.Claim(blobPrefix, func(name string, data []byte) {
		at := strings.LastIndexByte(name, '/')
		n, err := strconv.Atoi(name[at+1:])
		if err != nil || at <= len(blobPrefix) {
			return
		}
		namespace := name[len(blobPrefix):at]
		if found[namespace] == nil {
			found[namespace] = map[int][]string{}
		}
		found[namespace][n] = strings.Split(string(data), "\n")
	})
	for namespace, chunks := range found {
		s := t.of(namespace)
		var numbers []int
		for n := range chunks {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		var all []string
		for _, n := range numbers {
			all = append(all, chunks[n]...)
		}
		last := numbers[len(numbers)-1]
		total := last*chunk + len(chunks[last])
		s.first, s.dropped, s.saved = total-len(all), numbers[0]*chunk, total
		own := s.entries // those of this process follow
		t.bytes, s.entries, s.bytes = t.bytes-s.bytes, nil, 0
		t.append(s, append(all, own...)...)
	}
	t.trim()
}

// save writes what was added since it was called last.
func (t *Trail) save(put func(name string, data []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.load(); !t.loaded {
		return
	}
	for namespace, s := range t.spaces {
		name := func(n int) string { return blobPrefix + namespace + "/" + strconv.Itoa(n) }
		end := s.first + len(s.entries)
		for n := s.saved / chunk; n*chunk < end && s.saved < end; n++ {
			from, to := max(n*chunk, s.first), min((n+1)*chunk, end)
			if from < to {
				put(name(n), []byte(strings.Join(s.entries[from-s.first:to-s.first], "\n")))
			}
		}
		s.saved = end
		for ; s.dropped+chunk <= s.first; s.dropped += chunk {
			put(name(s.dropped/chunk), nil)
		}
	}
}
