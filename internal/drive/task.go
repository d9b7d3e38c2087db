package drive

import (
	"time"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Policies are outage policies by number.
type Policies interface {
	OnOutage(of int) rule.Outage
}

// Task has the ops of one request while the store decides them. Its zero value is ready for use. A Task
// can be used again after Reset; it then reuses its memory.
type Task struct {
	Verb store.Verb

	// Step has the ops to decide, and what each of them belongs to: the
	// caller's numbers, ascending. After Run they are the ops that were
	// answered, with their results.
	plan.Step

	// Once is the op of the record of the call, or nil: see [store.Call]. After Run its Result reports
	// whether the ops have the results of an earlier call.
	Once *store.Op

	// Policies are the outage policies of what the ops belong to.
	Policies Policies

	// Refused is set by the caller for a request that is denied regardless of its ops.
	Refused bool

	// HeldLocally is set by the caller for a call about the holds of a take that local
	// memory decided.
	HeldLocally bool

	// Unproven is set by the caller for a call about the holds of a take: its receipt, if that is valid under no secret that the
	// store knows. The ops then find no hold. The store may learn of the secret later.
	Unproven string

	// Denied is set by Run to what the first op belongs to whose policy denied
	// the request, or to -1.
	Denied int

	// Outage is set by Run to the cause, when the store could not answer some
	// op, or not confirm it. The decision is degraded then.
	Outage error

	// Reason is set by Run with Outage: why the store could not answer, the
	// first time in this task.
	Reason store.Reason

	// Local is set by Run when local memory holds for the task.
	Local bool

	// RetryAfter is set by Run with Outage: how long to wait at least, if a
	// policy denies. It is the longest time until a full memory admits new keys, or a second
	// if the length of the outage is unknown.
	RetryAfter time.Duration

	// Err is set by Run when the task was not decided. Nothing was counted.
	Err error

	call      [1]store.Call
	inLocal   localOps
	found     []int // of Of: holds that ended or were renewed before their report
	elsewhere []int // of Of: local memory does not have their holds, which that of another process has made

	waits bool // for the disk of local memory, which has given back what waits for a report

	// onlyEnds: all that t does is to end holds. A cancel with limits without holds also gives back what these have counted, if
	// it finds a hold of its take.
	onlyEnds bool
}

// Reset drops what t refers to, but for its Step, which is the caller's: that of a plan is emptied by
// [plan.Plan.Reset].
func (t *Task) Reset() {
	t.Policies, t.Unproven = nil, ""
	t.HeldLocally, t.waits, t.found, t.elsewhere = false, false, t.found[:0], t.elsewhere[:0]
	if t.Once != nil {
		t.Once, t.call[0] = nil, store.Call{}
	}
	if t.Outage != nil || t.Err != nil {
		t.inLocal.reset()
		t.Outage, t.Reason, t.RetryAfter, t.Err, t.Local = nil, "", 0, nil, false
	}
}

// next returns the next call of the store. Its ops have no results: a pool may have left those of another request.
func (t *Task) next() store.Call {
	for i := range t.Ops {
		t.Ops[i].Result = window.Result{}
	}
	return store.Call{Verb: t.Verb, Ops: t.Ops, Once: t.once()}
}

// Unknown is the reason of an outage without one.
const Unknown store.Reason = "unknown"

// outageRetry is the wait of a denial because of an outage, whose length is
// unknown.
const outageRetry = time.Second

// wait extends t.RetryAfter to cover out.
func (t *Task) wait(out *store.OutageError) {
	t.RetryAfter = max(t.RetryAfter, out.RetryAfter, outageRetry)
}

// decideByPolicy answers op by its policy.
func (t *Task) decideByPolicy(op *store.Op, of int) {
	if op.Role == store.Enforce && t.Policies.OnOutage(of) != rule.OutageAllow && t.Denied < 0 {
		t.Denied = of
	}
}

// deniedAlready reports whether the request is denied already, regardless of the store's answer.
func (t *Task) deniedAlready() bool {
	decides := t.Verb == store.Take || t.Verb == store.Check
	return t.Refused || decides && (t.Denied >= 0 || t.inLocal.denied)
}

// readOnly turns the enforcing ops of a denied request into reads. Those that
// count what is denied become records.
func readOnly(ops []store.Op) {
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Role != store.Enforce:
		case op.CountDenied:
			op.Role, op.CountDenied = store.Always, false
		default:
			op.N = 0
		}
	}
}

// takeAsLocal makes the ops that the store is asked for next take as many hits as those that
// memory has taken up to what fits, from the one numbered from on: all of them, or none.
func (t *Task) takeAsLocal(from int) {
	for i := from; i < len(t.inLocal.ops); i++ {
		if local := &t.inLocal.ops[i]; local.UpTo && local.Role == store.Enforce && t.Verb == store.Take {
			for n := range t.Ops {
				if op := &t.Ops[n]; op.UpTo {
					op.N, op.UpTo = min(op.N, local.N), false
				}
			}
			return
		}
	}
}

// Denies reports whether op, which was answered, denies its request.
func Denies(op *store.Op) bool {
	return (op.Role == store.Enforce || op.Role == store.Look) && !op.Result.Allowed
}

func anyDenies(ops []store.Op) bool {
	for i := range ops {
		if Denies(&ops[i]) {
			return true
		}
	}
	return false
}

// once returns the record for the next call of the store.
func (t *Task) once() *store.Op {
	if t.Once == nil || t.Verb == store.Take && (t.Denied >= 0 || t.inLocal.denied) {
		return nil
	}
	return t.Once
}

// keepAnswered moves the ops that have results to the front, with their numbers and, if there are any, their limits. It
// returns how many they are.
func keepAnswered(ops []store.Op, of []int, limits []*window.Compiled) (left int) {
	for i := range ops {
		if ops[i].Result == (window.Result{}) {
			continue
		}
		ops[left], of[left] = ops[i], of[i]
		if limits != nil {
			limits[left] = limits[i]
		}
		left++
	}
	return left
}

// final returns how many hits of op are final after t, which ends holds: all for a negative number.
func (t *Task) final(op *store.Op) int64 {
	if t.Verb == store.Cancel {
		return 0
	}
	return max(op.N, -1)
}

// IsDenied reports whether the request of t, which was decided, is denied.
func (t *Task) IsDenied() bool {
	return t.WasDenied() || !t.WasAdmitted() && (t.deniedAlready() || anyDenies(t.Ops))
}

// WasDenied reports whether the record of t is that of a take that was denied, perhaps by a rule that t does not have.
func (t *Task) WasDenied() bool { return t.Replayed() && !t.Once.Result.Allowed }

// WasAdmitted reports whether t has its whole answer from the record of a call that was admitted, whatever the rules
// of t say about it.
func (t *Task) WasAdmitted() bool { return t.Replayed() && t.Once.Result.Allowed && t.Outage == nil }

// Replayed reports whether ops of t have the results of an earlier call.
func (t *Task) Replayed() bool { return t.Once != nil && t.Once.Result.Before > 0 }

// localOps is the part of a task that local memory answers.
type localOps struct {
	ops    []store.Op
	of     []int              // ops[i] belongs to of[i]
	limits []*window.Compiled // of the store; ops have shares of them
	lost   bool               // the store may have counted others

	once       *store.Op // the record in memory; nil: none
	denied     bool      // one of the ops denies
	deniedFrom int       // the first of those that memory has decided together with it
}

// refused reports whether memory has counted nothing for ops[i], because it has denied the take
// of which it is a part.
func (l *localOps) refused(i int) bool {
	op := &l.ops[i]
	return l.denied && i >= l.deniedFrom && op.Role == store.Enforce && !op.CountDenied
}

// replayed reports whether the ops have the results of an earlier call.
func (l *localOps) replayed() bool { return l.once != nil && l.once.Result.Before > 0 }

func (l *localOps) reset() {
	clear(l.ops)
	clear(l.limits)
	l.ops, l.of, l.limits, l.denied, l.lost = l.ops[:0], l.of[:0], l.limits[:0], false, false
	l.once = nil
}

// add adds op, which belongs to of, with its share of the limit, after an outage.
func (l *localOps) add(op store.Op, of int, share *window.Compiled, out *store.OutageError) {
	l.limits, l.lost = append(l.limits, op.Limit), l.lost || !out.Uncounted
	op.Limit = share
	l.ops, l.of = append(l.ops, op), append(l.of, of)
}

// cut drops the ops from the one numbered n on.
func (l *localOps) cut(n int) { l.ops, l.of, l.limits = l.ops[:n], l.of[:n], l.limits[:n] }
