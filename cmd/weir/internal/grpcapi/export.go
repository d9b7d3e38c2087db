package grpcapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/export"
)

const (
	exportChunk   = 16 << 10 // bytes of keys in a message, about
	exportTimeout = 10 * time.Second
)

// errReadsSlowly is the error of a caller that lets an export wait.
var errReadsSlowly = &answer.Problem{Status: http.StatusRequestTimeout, Detail: "the caller has not read the export for " + exportTimeout.String()}

// export serves the method Export.
func (a *API) export(c *grpcserver.Call) error {
	resources := c.Resources()
	if err := resources.Reserve(streamBytes); err != nil {
		return err
	}
	defer resources.Release(streamBytes)
	in := new(weirv1.ExportRequest)
	if err := receiveOne(c, in); err != nil {
		return err
	}
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return err
	}
	o := export.Options{Closed: in.GetClosed(), Most: in.GetN()}
	switch {
	case in.GetRule() == "":
		return fault.Newf("rule", "is missing; name one")
	case o.Most < 0:
		return fault.Newf("n", "%d: want a number from 1 on, or 0 for all keys", o.Most)
	case in.GetAfter() != "":
		var ok bool
		if o.After, ok = answer.ParsePlace(in.GetRule(), o.Closed, in.GetAfter()); !ok {
			return fault.Newf("after", "is no place where an export of this rule ended")
		}
	}
	end, err := answer.BeginExport(ns)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context())
	s := exportStream{ctx: ctx, leaving: c.Leaving(), messages: make(chan *weirv1.ExportResponse)}
	o.Begin, o.Each = s.begin, s.key
	var result export.Result
	go func() {
		defer close(s.messages)
		defer end()
		if result, s.err = ns.Engine().Export(ctx, in.GetRule(), o); s.err == nil {
			s.err = s.flush()
		}
	}()
	for m := range s.messages {
		if err == nil {
			if err = c.SendMsg(m); err != nil {
				cancel()
			}
		}
	}
	cancel()
	switch {
	case err != nil:
		return err
	case errors.Is(s.err, export.ErrNoPeriod):
		return fault.Newf("closed", "%v", s.err)
	case s.err != nil:
		return s.err
	}
	last := &weirv1.ExportEnd{Complete: result.Next == nil, Keys: result.Keys, Unknown: result.Unknown}
	if result.Next != nil {
		last.After = answer.Place(in.GetRule(), o.Closed, result.Next)
	}
	return c.SendMsg(&weirv1.ExportResponse{End: last})
}

// exportStream makes the messages of an export. Another goroutine sends them, so that a caller that does
// not read ends the export.
type exportStream struct {
	ctx      context.Context
	leaving  <-chan struct{}
	messages chan *weirv1.ExportResponse
	names    []string // of the attributes
	keys     []*weirv1.ExportKey
	size     int   // of keys, in bytes, about
	err      error // of the export; read it when messages is closed
}

func (s *exportStream) begin(per []string) error {
	s.names = per
	return nil
}

// key adds a key.
func (s *exportStream) key(k *export.Key) error {
	m := &weirv1.ExportKey{Attributes: make(map[string]string, len(k.Values)), Used: k.Used, Held: k.Held, At: timestamppb.New(k.At.Time())}
	for i, v := range k.Values {
		m.Attributes[s.names[i]] = strings.ToValidUTF8(v, "\uFFFD")
		s.size += len(s.names[i]) + len(v)
	}
	if k.HasQuota() {
		quota := k.Quota
		m.Quota = &quota
	}
	if k.Length > 0 {
		m.Start, m.End = timestamppb.New(k.Start.Time()), timestamppb.New(k.Start.Add(k.Length).Time())
	}
	m.Series = cellsOf(k.History)
	s.keys = append(s.keys, m)
	const key, cell = 64, 32 // bytes in a message
	if s.size += key + cell*len(k.History); s.size < exportChunk {
		return nil
	}
	return s.flush()
}

// flush hands the keys over.
func (s *exportStream) flush() error {
	if len(s.keys) == 0 {
		return nil
	}
	late := time.NewTimer(exportTimeout)
	defer late.Stop()
	select {
	case s.messages <- &weirv1.ExportResponse{Keys: s.keys}:
		s.keys, s.size = nil, 0
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.leaving:
		return grpcserver.ErrStopping
	case <-late.C:
		return errReadsSlowly
	}
}
