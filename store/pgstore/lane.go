package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store/remote"
)

const (
	// The pauses between attempts to connect get longer from retryAtLeast to retryAtMost.
	retryAtLeast = 50 * time.Millisecond
	retryAtMost  = time.Second

	// connectFor is how long an attempt to connect may take, with all that a new connection needs.
	connectFor = 5 * time.Second

	// hostFor is how long one of several hosts may take of it.
	hostFor = 2 * time.Second

	// probeEvery is how often a connection without calls is used, so that its loss is noticed.
	probeEvery = time.Second

	// stuckAfter is how long a transaction may take. Its callers have left by then, and its connection is
	// closed.
	stuckAfter = 3 * time.Second

	// maxBatch is the most calls of one transaction, unless one caller has more.
	maxBatch = 64
)

// lane is a connection with the goroutine that uses it. It makes the connection again when it
// is lost.
type lane struct {
	s     *Store
	first bool // it sweeps
	conn  *pgconn.PgConn
	wake  chan struct{} // gets one from the queue when the lane has to look at it

	missing bool  // rows of the last transaction were missing
	made    int64 // rows that it made
	moved   bool  // it needs another connection: a table is missing

	wrote time.Duration // when conn was made, or last wrote

	batch []*request // of the transaction
	rows  rows
	args  args
}

func (l *lane) run() {
	pause := retryAtLeast
	for l.s.life.Err() == nil {
		err := l.connect()
		if err == nil {
			pause = retryAtLeast
			l.s.link.connected()
			l.s.server.Report(nil)
			l.serve()
			l.close()
			l.s.link.lost()
			continue // callers wait meanwhile, unless this attempt fails
		}
		if l.s.life.Err() != nil {
			return
		}
		if none := l.s.link.failed(err); none {
			l.s.drain(outage(err, true))
		}
		l.s.server.Report(err)
		l.sleep(pause)
		pause = min(2*pause, retryAtMost)
	}
}

func (l *lane) sleep(d time.Duration) {
	select {
	case <-l.s.life.Done():
	case <-time.After(d):
	}
}

// connect makes the connection, and all that it needs.
func (l *lane) connect() error {
	err := l.tryConnect()
	if noTable(err) { // the next attempt makes it
		l.s.dropped.Store(true)
		err = l.tryConnect()
	}
	return err
}

func (l *lane) tryConnect() (err error) {
	ctx, cancel := context.WithTimeout(l.s.life, connectFor)
	defer cancel()
	bare := l.s.bare.Load()
	l.wrote = remote.Elapsed()
	if l.conn, err = pgconn.ConnectConfig(ctx, l.s.config.session(!bare)); err != nil {
		if refusesSettings(err) && !bare {
			l.s.bare.Store(true)
			return l.tryConnect()
		}
		return err
	}
	if err = l.s.prepare(ctx, l.conn); err == nil && !l.s.unprepared.Load() {
		if err = l.prepare(ctx); lostStatement(err) {
			l.s.unprepared.Store(true)
			err = nil
		}
	}
	if err != nil {
		l.close()
	}
	return err
}

// prepare prepares all statements in one step: on one connection of a proxy to the server.
func (l *lane) prepare(ctx context.Context) error {
	p := l.conn.StartPipeline(ctx)
	for _, st := range l.s.sql.all() {
		p.SendPrepare(st.name, st.text, nil)
	}
	err := p.Sync()
	for err == nil {
		var r any
		if r, err = p.GetResults(); r == nil {
			break
		}
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	return err
}

// close closes the connection. A server that hangs may leave it open for longer: neither the next
// connection, maybe to another server, nor the end of the process waits for that.
func (l *lane) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // nothing is lost by it
	select {
	case <-l.conn.CleanupDone():
	case <-ctx.Done():
		_ = l.conn.Conn().Close()
	}
}

// serve decides what is queued until the connection is lost or the store is closed. While the
// circuit breaker is open it asks the server until that answers in time.
func (l *lane) serve() {
	l.moved = false
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	sweep := time.NewTimer(sweepEvery)
	defer sweep.Stop()
	if !l.first || l.s.sweeper.margin == 0 {
		sweep.Stop()
	}
	pause := time.Duration(0) // before it asks: the server may have answered just now
	for {
		l.s.queue.rest(l) // before the circuit breaker is read: when it opens, lanes that rest are woken
		var soon <-chan time.Time
		if l.s.server.Breaker.Open() {
			soon = time.After(pause)
		}
		select {
		case <-soon:
			l.s.queue.leave(l)
			l.probe()
			pause = remote.BreakFor
		case do := <-l.s.tasks:
			l.s.queue.leave(l)
			l.task(do)
		case <-l.s.life.Done():
			l.s.queue.leave(l)
			return
		case <-tick.C:
			l.s.queue.leave(l)
			l.probe()
		case <-sweep.C:
			l.s.queue.leave(l)
			sweep.Reset(l.sweep())
		case <-l.wake:
			if l.batch = l.s.queue.take(l.batch[:0], maxBatch); len(l.batch) > 0 {
				l.flush()
				clear(l.batch)
				pause = 0
			}
		}
		if l.moved || l.conn.IsClosed() || l.wrote < time.Duration(l.s.writable.Load()) {
			return
		}
	}
}

// probe asks the server for an answer, which closes the circuit breaker if it comes in time.
func (l *lane) probe() {
	ctx, cancel := context.WithTimeout(l.s.life, probeEvery)
	defer cancel()
	began := remote.Elapsed()
	err := l.conn.Ping(ctx)
	if answers(err) && remote.Elapsed()-began <= l.s.config.Timeout {
		l.s.server.Breaker.Answered()
	}
	l.s.server.Report(nil)
}

// follow looks for another server, at most once a second, if err says that this one accepts no writes: after a failover the
// address may lead to the new primary. If a new connection accepts writes, lanes leave those that do not. Reads go on until then.
func (s *Store) follow(err error) {
	if reasonOf(err) != remote.ReadOnly || s.following.Swap(true) {
		return
	}
	s.background(func() {
		defer s.following.Store(false)
		ctx, cancel := context.WithTimeout(s.life, connectFor)
		defer cancel()
		began := remote.Elapsed()
		l := &lane{s: s}
		if l.tryConnect() == nil {
			if acceptsWrites(ctx, l.conn) == nil {
				s.writable.Store(int64(began))
			}
			l.close()
		}
		l.sleep(probeEvery)
	})
}

// flush decides the batch in one transaction.
func (l *lane) flush() {
	ctx, cancel := context.WithTimeout(l.s.life, stuckAfter)
	defer cancel()
	err := l.lock(ctx)
	if lostStatement(err) {
		l.s.unprepared.Store(true)
		if err = l.rollback(ctx); err == nil {
			err = l.lock(ctx)
		}
	}
	switch {
	case err == nil:
		l.decide()
		if !l.rows.changed() {
			l.deliver(nil)
			err = l.finish(ctx, l.s.sql.commit, nil)
			break
		}
		if err = l.finish(ctx, l.s.sql.commit, l.rows.writes(&l.args)); err == nil {
			l.deliver(nil)
			l.wrote = remote.Elapsed()
			return
		}
		l.deliver(outage(err, false)) // the answer to a commit may be lost
	case noTable(err):
		l.s.dropped.Store(true)
		l.moved = true
		l.again(outage(err, true))
		return
	case l.conn.IsClosed() && ctx.Err() == nil:
		l.again(outage(err, true))
	default:
		l.deliver(outage(err, true))
	}
	if err == nil {
		return
	}
	if lostStatement(err) {
		l.s.unprepared.Store(true)
	}
	_ = l.rollback(ctx)
	l.s.follow(err)
}

// again queues the requests of the batch, whose connection ended, or must end because a table is missing, before
// they were decided. A request that has lost more connections than the store keeps ends with err.
func (l *lane) again(err error) {
	var rs []*request
	for _, r := range l.batch {
		if r.lost++; r.lost > l.s.config.connections || r.phase.Load() != waiting {
			l.s.finish(r, err)
		} else {
			rs = append(rs, r)
		}
	}
	l.s.queue.again(rs)
}

// rollback ends a transaction that has failed.
func (l *lane) rollback(ctx context.Context) error {
	if l.conn.IsClosed() || l.conn.TxStatus() == 'I' {
		return nil
	}
	return l.conn.Exec(ctx, "ROLLBACK").Close()
}

// deliver ends the requests of the batch.
func (l *lane) deliver(err error) {
	for _, r := range l.batch {
		l.s.finish(r, err)
	}
}

// lock locks and reads the rows of the batch, or only reads them if no call counts. Rows that
// exist are locked by the statement that reads them. If some are missing the lane gives up its
// locks, and locks all rows again, in their order, while it makes the missing ones: if it kept its locks
// meanwhile, two lanes could wait for each other. Where rows were missing the last time it does so at once.
func (l *lane) lock(ctx context.Context) error {
	l.rows.load(l.batch)
	keys := l.args.keys(&l.rows)
	var b pgconn.Batch
	if l.rows.reads {
		bare := l.s.bare.Load() // a transaction has the settings
		if bare {
			l.begin(&b)
		}
		l.add(&b, l.s.sql.read, keys)
		if bare {
			l.add(&b, l.s.sql.commit)
		}
		_, err := l.read(ctx, &b)
		return err
	}
	l.begin(&b)
	if !l.missing {
		l.add(&b, l.s.sql.lock, keys)
		found, err := l.read(ctx, &b)
		if err != nil || found == len(l.rows.all) {
			return err
		}
		b = pgconn.Batch{}
		l.add(&b, l.s.sql.rollback)
		l.begin(&b)
	}
	l.add(&b, l.s.sql.make, l.args.rows(&l.rows)...)
	l.add(&b, l.s.sql.read, l.args.keys(&l.rows))
	_, err := l.read(ctx, &b)
	l.missing = l.made > 0
	return err
}

// begin begins a transaction.
func (l *lane) begin(b *pgconn.Batch) {
	l.add(b, l.s.sql.begin)
	if l.s.bare.Load() {
		l.add(b, l.s.sql.settings)
	}
}

// read runs statements, and reads the rows in their results. It returns how many they are. l.made is how
// many were made.
func (l *lane) read(ctx context.Context, b *pgconn.Batch) (found int, err error) {
	results := l.conn.ExecBatch(ctx, b)
	for results.NextResult() {
		r := results.ResultReader()
		for r.NextRow() {
			if l.rows.read(r.Values()) {
				found++
			}
		}
		if tag, _ := r.Close(); tag.Insert() { // its error is that of results
			l.made = tag.RowsAffected()
		}
	}
	return found, results.Close()
}

// finish writes rows, if there are some, and ends the transaction.
func (l *lane) finish(ctx context.Context, end statement, writes [][]byte) error {
	if l.rows.reads {
		return nil
	}
	var b pgconn.Batch
	if writes != nil {
		l.add(&b, l.s.sql.write, writes...)
	}
	l.add(&b, end)
	return l.conn.ExecBatch(ctx, &b).Close()
}

// formats are those of all parameters and results: binary.
var formats = []int16{1}

// add adds a statement to b.
func (l *lane) add(b *pgconn.Batch, st statement, values ...[]byte) {
	if l.s.unprepared.Load() {
		b.ExecParams(st.text, values, nil, formats, formats)
	} else {
		b.ExecPrepared(st.name, values, formats, formats)
	}
}

// decide decides the calls of the batch whose callers have not left.
func (l *lane) decide() {
	now := l.rows.now
	if l.s.clock != nil {
		now = l.s.clock()
	}
	n := 0
	for _, r := range l.batch {
		if r.phase.CompareAndSwap(waiting, decided) {
			l.rows.decide(r, l.rows.ofOps[n:], now, *l.s.members.Load())
		}
		n += len(r.ops)
	}
}

// stateError is the fault of a row that is no counter.
type stateError struct{ key key }

func (e *stateError) Error() string {
	return fmt.Sprintf("the row of key %x is no counter that this version of weir knows", e.key)
}
