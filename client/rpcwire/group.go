package rpcwire

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/sizes"
)

// Numbers of the fields of messages with several requests or answers.
const (
	batchRequests, batchAnswers = 1, 1

	decideID, decideRequests, decideTimeout = 1, 2, 3
	decideAnswers, decideProblem            = 2, 3
)

// Problem is a weir.v1.Problem.
type Problem struct {
	Code          int32
	Detail, Field string
	Reason        string
	RetryAfter    time.Duration
}

func appendProblem(b []byte, number protowire.Number, p *Problem) []byte {
	b, start := open(b, number)
	b = appendInt(b, 1, int64(p.Code))
	b = appendText(b, 2, p.Detail)
	b = appendText(b, 3, p.Field)
	b = appendText(b, 4, p.Reason)
	return shut(appendDuration(b, 5, p.RetryAfter), start)
}

func readProblem(b []byte) (p Problem, err error) {
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return p, err
		}
		switch {
		case f.number == 1 && f.isNumber():
			p.Code = int32(f.n) //nolint:gosec // as package proto cuts it
		case f.number == 2 && f.isBytes():
			p.Detail = string(f.bytes)
		case f.number == 3 && f.isBytes():
			p.Field = string(f.bytes)
		case f.number == 4 && f.isBytes():
			p.Reason = string(f.bytes)
		case f.number == 5 && f.isBytes():
			p.RetryAfter, err = duration(f.bytes)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// Group is a message with several requests, as it is read. Its requests are in the
// message: see [Ask.ReadRequest].
type Group struct {
	ID       uint64
	Timeout  time.Duration // 0: none
	Requests [][]byte
}

// ReadBatch reads b, a weir.v1.BatchRequest. It reuses the slice of g.
func (g *Group) ReadBatch(b []byte) error { return g.read(b, batchRequests, 0, 0) }

// ReadDecide reads b, a weir.v1.DecideRequest. It reuses the slice of g.
func (g *Group) ReadDecide(b []byte) error { return g.read(b, decideRequests, decideID, decideTimeout) }

func (g *Group) read(b []byte, requests, id, timeout protowire.Number) (err error) {
	*g = Group{Requests: g.Requests[:0]}
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return err
		}
		switch {
		case f.number == requests && f.isBytes():
			if len(g.Requests) > sizes.Batch {
				continue // there are too many already
			}
			g.Requests = append(g.Requests, f.bytes)
		case f.number == id && f.isNumber():
			g.ID = f.n
		case f.number == timeout && f.isBytes():
			if g.Timeout, err = duration(f.bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// OpenBatch begins a request of a batch; [Shut] ends it.
func OpenBatch(b []byte) (_ []byte, start int) { return open(b, batchRequests) }

// OpenDecide begins a request on a stream; [Shut] ends it.
func OpenDecide(b []byte) (_ []byte, start int) { return open(b, decideRequests) }

// OpenDecision begins the field with the decision of a method's answer; [Shut] ends
// it.
func OpenDecision(b []byte) (_ []byte, start int) { return open(b, 1) }

// Shut ends what begins at start.
func Shut(b []byte, start int) []byte { return shut(b, start) }

// AppendID appends the id of a message on a stream.
func AppendID(b []byte, id uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, decideID, protowire.VarintType), id)
}

// AppendTimeout appends the time-out of a message on a stream, unless it is 0.
func AppendTimeout(b []byte, d time.Duration) []byte { return appendDuration(b, decideTimeout, d) }

// AppendBatchDecision appends an answer of a batch.
func AppendBatchDecision(b []byte, d *weir.Decision) []byte { return answer(b, batchAnswers, d, nil) }

// AppendBatchProblem appends an answer of a batch.
func AppendBatchProblem(b []byte, p *Problem) []byte { return answer(b, batchAnswers, nil, p) }

// AppendDecideDecision appends an answer on a stream.
func AppendDecideDecision(b []byte, d *weir.Decision) []byte { return answer(b, decideAnswers, d, nil) }

// AppendDecideProblem appends an answer on a stream.
func AppendDecideProblem(b []byte, p *Problem) []byte { return answer(b, decideAnswers, nil, p) }

// AppendProblem appends why a whole message on a stream was not decided.
func AppendProblem(b []byte, p *Problem) []byte { return appendProblem(b, decideProblem, p) }

// answer appends an Answer with a decision or a problem.
func answer(b []byte, number protowire.Number, d *weir.Decision, p *Problem) []byte {
	b, start := open(b, number)
	if p != nil {
		return shut(appendProblem(b, 2, p), start)
	}
	b, inner := open(b, 1)
	return shut(shut(AppendDecision(b, d), inner), start)
}

// Answers is a message with several answers, as it is read. Its answers are in the
// message.
type Answers struct {
	ID      uint64
	Answers [][]byte
	Problem *Problem // of the whole message, or nil
}

// ReadBatch reads b, a weir.v1.BatchResponse. It reuses the slice of a.
func (a *Answers) ReadBatch(b []byte) error { return a.read(b, batchAnswers, 0, 0) }

// ReadDecide reads b, a weir.v1.DecideResponse. It reuses the slice of a.
func (a *Answers) ReadDecide(b []byte) error {
	return a.read(b, decideAnswers, decideID, decideProblem)
}

func (a *Answers) read(b []byte, answers, id, problem protowire.Number) (err error) {
	*a = Answers{Answers: a.Answers[:0]}
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return err
		}
		switch {
		case f.number == answers && f.isBytes():
			a.Answers = append(a.Answers, f.bytes)
		case f.number == id && f.isNumber():
			a.ID = f.n
		case f.number == problem && f.isBytes():
			p, err := readProblem(f.bytes)
			if err != nil {
				return err
			}
			a.Problem = &p
		}
	}
	return nil
}

// ReadAnswer reads b, a weir.v1.Answer: its decision into d, or its problem.
func ReadAnswer(b []byte, d *weir.Decision) (*Problem, error) {
	var f field
	for len(b) > 0 {
		rest, err := next(b, &f)
		if err != nil {
			return nil, err
		}
		b = rest
		switch {
		case f.number == 1 && f.isBytes():
			return nil, ReadDecision(f.bytes, d)
		case f.number == 2 && f.isBytes():
			p, err := readProblem(f.bytes)
			return &p, err
		}
	}
	return nil, errMessage
}

// ReadDecided reads b, the answer of a method for one verb, into d.
func ReadDecided(b []byte, d *weir.Decision) error {
	var f field
	for len(b) > 0 {
		rest, err := next(b, &f)
		if err != nil {
			return err
		}
		if f.number == 1 && f.isBytes() {
			return ReadDecision(f.bytes, d)
		}
		b = rest
	}
	return errMessage
}
