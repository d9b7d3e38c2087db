package replay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// DefaultSort is the default of [Logs.Sort].
const DefaultSort = time.Minute

// Logs is a source that reads the lines of logs in the order of their times.
type Logs struct {
	// Files are read one after the other. See [Logs.ByTime].
	Files []Log

	// Format is the format of the logs. Nil: [AccessLog].
	Format Format

	// Merge reads all logs at the same time, in the order of the times in them.
	Merge bool

	// Sort is the time by which lines can be out of order. Lines are sorted by time, and
	// the lines of this length of time are kept in memory. The error is an [OrderError] if
	// a line is out of order by more. 0: DefaultSort.
	Sort time.Duration
}

// Open implements [Source].
func (l Logs) Open(ctx context.Context, attributes []string) (Reader, error) {
	if l.Format == nil {
		l.Format = AccessLog
	}
	var r Reader
	if l.Merge && len(l.Files) > 1 {
		m := &merger{heap: queue[*input]{before: (*input).before}}
		for _, file := range l.Files {
			m.add(l.lines(ctx, []Log{file}, attributes), len(attributes))
		}
		r = m
	} else {
		r = l.lines(ctx, l.Files, attributes)
	}
	return newSorter(r, cmp.Or(l.Sort, DefaultSort), len(attributes)), nil
}

// ByTime returns the files in the order of their first times. A shell lists rotated logs
// with the newest first. A file whose time is unknown stays after the one
// before it. The order does not change if a file can be opened only once, or if the files are
// merged.
func (l Logs) ByTime(ctx context.Context) []Log {
	if len(l.Files) < 2 || l.Merge || slices.ContainsFunc(l.Files, func(f Log) bool { return f.Once }) {
		return l.Files
	}
	if l.Format == nil {
		l.Format = AccessLog
	}
	type dated struct {
		Log
		first window.Instant
	}
	var list []dated
	for i, file := range l.Files {
		first, ok := l.firstTime(ctx, file)
		if !ok && i > 0 {
			first = list[i-1].first
		}
		list = append(list, dated{file, first})
	}
	slices.SortStableFunc(list, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
	files := make([]Log, len(list))
	for i, d := range list {
		files[i] = d.Log
	}
	return files
}

// headLines is the number of lines that may be bad before the first time of a log.
const headLines = 1000

// firstTime returns the time of the first request in a log. It reports whether there is one.
func (l Logs) firstTime(ctx context.Context, file Log) (first window.Instant, ok bool) {
	file.Told = nil
	r := l.lines(ctx, []Log{file}, nil)
	defer r.Close()
	e := Entry{}
	for range headLines {
		if r.Next(&e) != nil {
			return 0, false // reading the log returns the error again
		}
		if e.Bad == nil {
			return e.Time, true
		}
	}
	return 0, false
}

// lines returns a reader of the lines of logs, one log after the other.
func (l Logs) lines(ctx context.Context, logs []Log, attributes []string) *lineReader {
	ctx, stop := context.WithCancel(ctx)
	r := &lineReader{format: l.Format, attributes: attributes, stop: stop, in: &reader{ctx: ctx, blocks: make(chan block, ahead)}}
	go r.in.read(logs)
	return r
}

// lineReader turns the lines that a [reader] reads into requests.
type lineReader struct {
	format     Format
	attributes []string
	in         *reader
	stop       context.CancelFunc

	// waiting is the block after the end of a log, if waits is set.
	waiting block
	waits   bool
	rest    string // of the text of the block
	parser  Parser
	log     string
	line    int64
	others  int64 // lines about something else
	err     error
}

func (r *lineReader) skipped() int64 { return r.others }

func (r *lineReader) Next(e *Entry) error {
	for {
		if r.err != nil {
			return r.err
		}
		if r.rest == "" {
			if tooLong := r.next(e); tooLong {
				return nil
			}
			continue
		}
		at := strings.IndexByte(r.rest, '\n')
		text := r.rest
		if at >= 0 {
			text, r.rest = r.rest[:at], r.rest[at+1:]
		} else {
			r.rest = ""
		}
		r.line++
		e.Log, e.Line, e.Lines, e.Text, e.Verb = r.log, r.line, 0, text, Take
		e.Hits = 0
		e.Bad = r.parser.Parse(text, e)
		if e.Bad == ErrOther { //nolint:errorlint // hot path, and nothing wraps these
			r.others++
			continue
		}
		if e.Bad == ErrSkip { //nolint:errorlint // as above
			continue
		}
		if e.Lines > 1 {
			e.Line -= e.Lines - 1
		}
		return nil
	}
}

// next reads the next block, or sets r.err. If the block is the start of a line that
// is too long, or if a log has ended inside a request, next sets e, which is bad, and
// returns true.
func (r *lineReader) next(e *Entry) (bad bool) {
	b, ok := r.waiting, r.waits
	if r.waiting, r.waits = (block{}), false; !ok {
		b, ok = <-r.in.blocks
	}
	if (!ok || b.first) && r.end(e) {
		r.waiting, r.waits = b, ok
		return true
	}
	switch {
	case !ok:
		r.err = io.EOF
		if err := r.in.ctx.Err(); err != nil {
			r.err = err
		}
		return false
	case b.err != nil:
		r.err = b.err
		return false
	}
	if b.first {
		r.log, r.line, r.parser = b.log, 0, r.format.NewParser(r.attributes)
	}
	if b.cut {
		r.line++
		e.Log, e.Line, e.Lines, e.Text, e.Bad = r.log, r.line, 0, b.text, errLongLine
		return true
	}
	r.rest = b.text
	return false
}

// end ends the current log. If that ends inside a request, end sets e, which is bad,
// and returns true.
func (r *lineReader) end(e *Entry) (bad bool) {
	p, ok := r.parser.(Ender)
	if r.parser = nil; !ok || r.in.ctx.Err() != nil {
		return false
	}
	e.Log, e.Line, e.Lines, e.Text = r.log, r.line, 0, ""
	if e.Bad = p.End(e); e.Bad == nil {
		return false
	}
	e.Line -= max(e.Lines, 1) - 1
	return true
}

func (r *lineReader) Close() error {
	r.stop()
	for range r.in.blocks { // until the goroutine has ended
	}
	if r.err == nil {
		r.err = errors.New("replay: the source is closed")
	}
	return nil
}
