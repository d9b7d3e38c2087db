package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// part is a request that was read, by itself or as one of a batch.
type part struct {
	named    store.Verb   // whose scope the caller needs
	verb     store.Verb   // to run: a check for hits: 0
	request  weir.Request // without its attributes
	from, to int          // these, in the slice that the requests of a batch share
	fault    *fault.Fault // of a request of a batch, which is then not decided
}

// decode reads body as one request for verb into item, whose attributes it reuses.
func (s *scanner) decode(body []byte, verb store.Verb, item *weir.Item) *fault.Fault {
	s.reset(body)
	p, attrs, f := s.request(item.Request.Attributes[:0], verb, false)
	if f == nil {
		f = s.end()
	}
	item.Verb, item.Request = p.verb, p.request
	item.Request.Attributes = attrs
	return f
}

// request reads an object with the members of a request for verb or, in a batch,
// for the verb that it names. It appends the attributes to attrs.
func (s *scanner) request(attrs []weir.Attribute, verb store.Verb, batch bool) (part, []weir.Attribute, *fault.Fault) {
	p := part{named: verb, from: len(attrs)}
	r := &p.request
	r.Hits = 1
	start := s.pos
	m := members{batch: batch, ends: verb.NeedsReceipt()}
	f := s.object(func(name string, at int) (f *fault.Fault) {
		again := false
		switch {
		case name == "attributes":
			again, m.attributes = m.attributes, true
			attrs, f = s.attributes(attrs)
		case name == "hits":
			again, m.hits = m.hits > 0, s.pos
			r.Hits, f = s.hits()
		case name == "feedback" && !m.ends:
			again, m.feedback = m.feedback > 0, s.pos
			r.Feedback, f = s.feedback()
		case name == "receipt" && (m.ends || batch):
			again, m.receipt = m.receipt > 0, s.pos
			r.Receipt, f = s.receipt()
		case name == "idempotency_key" && m.once(verb):
			again, m.key = m.key > 0, s.pos
			r.IdempotencyKey, f = s.idempotencyKey()
		case name == "idempotency_for" && m.once(verb):
			again, m.keep = m.keep > 0, s.pos
			r.IdempotencyFor, f = s.idempotencyFor()
		case name == "verb" && batch:
			again, m.verb = m.verb, true
			p.named, f = s.verb()
		default:
			f = s.fault(at, "%s", m.unknown(verb))
		}
		if f == nil && again {
			f = s.twice(at)
		}
		return f.In(name)
	})
	if f == nil {
		f = s.checkMembers(&p, &m, start)
	}
	switch p.verb = p.named; {
	case p.named.NeedsReceipt() && m.hits == 0:
		r.Hits, r.Feedback = 0, "" // the amount that is held
	case r.Hits == 0:
		p.verb = store.Check
		r.IdempotencyKey, r.IdempotencyFor = "", 0 // it counts nothing, again or not
	}
	p.to = len(attrs)
	return p, attrs, f
}

// members are the members of a request that were read.
type members struct {
	batch, ends      bool // whether it is in a batch, or about the holds of a take
	attributes, verb bool

	hits, feedback, receipt, key, keep int // where the value begins; 0: missing
}

// once reports whether a request for verb, or of a batch, can have an idempotency key.
func (m *members) once(verb store.Verb) bool { return m.batch || canBeOnce(verb) }

func canBeOnce(verb store.Verb) bool {
	return verb == store.Take || verb == store.Record || verb == store.Refund || verb == store.Settle
}

// unknown returns the fault of another member.
func (m *members) unknown(verb store.Verb) string {
	switch {
	case m.batch:
		return "is unknown; a request in a batch has attributes, hits, feedback, verb, receipt, idempotency_key and idempotency_for"
	case verb == store.Settle:
		return "is unknown; want receipt, attributes, hits, idempotency_key and idempotency_for"
	case m.ends:
		return "is unknown; want receipt, attributes and hits"
	case verb == store.Check:
		return "is unknown; a check has attributes, hits and feedback"
	}
	return "is unknown; a request has attributes, hits, feedback, idempotency_key and idempotency_for"
}

// checkMembers returns the fault of members that do not go together in p, whose
// object starts at a byte.
func (s *scanner) checkMembers(p *part, m *members, start int) *fault.Fault {
	ends, hits := p.named.NeedsReceipt(), p.request.Hits
	switch {
	case !m.attributes:
		return s.missing("attributes", start)
	case ends && m.receipt == 0:
		return s.missing("receipt", start)
	case !ends && m.receipt > 0:
		return s.fault(m.receipt, "is for settle, cancel and renew").In("receipt")
	case hits == 0 && ends:
		return s.fault(m.hits, "is 0; use cancel to give back what was held").In("hits")
	case m.key > 0 && !canBeOnce(p.named):
		return s.fault(m.key, "is for take, record, refund and settle").In("idempotency_key")
	case m.keep > 0 && m.key == 0:
		return s.fault(m.keep, "is without idempotency_key").In("idempotency_for")
	case hits == 0 && m.feedback > 0:
		return s.fault(m.hits, "is 0, which counts nothing; leave it out with feedback").In("hits")
	}
	return nil
}

// attributes reads the object of attributes and appends them to attrs.
func (s *scanner) attributes(attrs []weir.Attribute) ([]weir.Attribute, *fault.Fault) {
	start := len(attrs)
	f := s.object(func(name string, at int) *fault.Fault {
		if f := answer.NameFault(attrs[start:], name); f != nil {
			f.Place = s.place(at)
			return f
		}
		at = s.pos
		value, f := s.value()
		if f == nil {
			if f = answer.ValueFault(value); f != nil {
				f.Place = s.place(at)
			}
		}
		attrs = append(attrs, weir.Attribute{Name: name, Value: value})
		return f.In(name)
	})
	return attrs, f
}

// value reads a string, a number or a boolean as the text of an attribute.
func (s *scanner) value() (string, *fault.Fault) {
	switch c := s.peek(); {
	case c == '"':
		return s.string()
	case c == 't':
		return "true", s.literal("true")
	case c == 'f':
		return "false", s.literal("false")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return "", s.unexpected("a string, a number or a boolean")
}

// hits reads the cost of a request. A cost of 0 turns the request into a check.
func (s *scanner) hits() (int64, *fault.Fault) {
	text, at, f := s.numeral("a number")
	if f != nil {
		return 0, f
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text[0] == '-':
		return 0, s.fault(at, "is negative; use refund to give hits back")
	case strings.Contains(text, "."):
		return 0, s.fault(at, "is not a whole number")
	case err != nil || n > window.MaxHits:
		return 0, s.fault(at, "is more than %d", window.MaxHits)
	}
	return n, nil
}

// feedback reads the name that a refund is given for.
func (s *scanner) feedback() (string, *fault.Fault) {
	name, at, f := s.quoted("a name in quotes")
	switch {
	case f != nil:
		return "", f
	case name == "":
		return "", s.fault(at, "is empty; leave it out to give hits back")
	case len(name) > sizes.Text:
		return "", s.fault(at, "has %d bytes, more than %d", len(name), sizes.Text)
	}
	return name, nil
}

// idempotencyKey reads an idempotency key.
func (s *scanner) idempotencyKey() (string, *fault.Fault) {
	key, at, f := s.quoted("a key in quotes")
	switch {
	case f != nil:
		return "", f
	case key == "":
		return "", s.fault(at, "is empty; leave it out, or send a random one")
	case len(key) > once.MaxKey:
		return "", s.fault(at, "has %d bytes, more than %d", len(key), once.MaxKey)
	}
	return key, nil
}

// idempotencyFor reads for how many seconds the answer is kept.
func (s *scanner) idempotencyFor() (time.Duration, *fault.Fault) {
	text, at, f := s.numeral("a number of seconds")
	if f != nil {
		return 0, f
	}
	const most = int64(once.Most / time.Second)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, s.fault(at, "is %.20s; want whole seconds from 1 to %d", text, most)
	}
	return time.Duration(n) * time.Second, nil
}

// receipt reads the receipt of a take.
func (s *scanner) receipt() (receipt.Receipt, *fault.Fault) {
	text, at, f := s.quoted("a receipt in quotes")
	if f != nil {
		return receipt.Receipt{}, f
	}
	r, err := receipt.Parse(text)
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return r, s.fault(at, "%s", f.Problem)
	}
	return r, nil
}

// verb reads the verb of a request in a batch.
func (s *scanner) verb() (store.Verb, *fault.Fault) {
	name, at, f := s.quoted(wantVerb + " in quotes")
	if f != nil {
		return 0, f
	}
	for _, v := range verbs {
		if name == v.String() {
			return v, nil
		}
	}
	return 0, s.fault(at, "is %.64q; want %s", name, wantVerb)
}

// verbs lists the verbs that a request can have.
var verbs = [...]store.Verb{
	store.Take, store.Check, store.Record, store.Refund, store.Settle, store.Cancel, store.Renew,
}

const wantVerb = "take, check, record, refund, settle, cancel or renew"
