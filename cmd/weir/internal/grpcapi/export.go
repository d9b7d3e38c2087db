package grpcapi

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/export"
)

// exportChunk is about how many bytes of keys a message has.
const exportChunk = 16 << 10

// export serves the method Export.
func (a *API) export(c *grpcserver.Call) error {
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
	end, err := answer.BeginExport(ns, c.Caller)
	if err != nil {
		return err
	}
	defer end()
	caller := c.Caller
	s := exportStream{call: c, again: func() error { return again(c, ns, caller) }}
	o.Begin, o.Each = s.begin, s.key
	result, err := ns.Engine().Export(c.Context(), in.GetRule(), o)
	if err == nil {
		err = s.flush()
	}
	switch {
	case errors.Is(err, export.ErrNoPeriod):
		return fault.Newf("closed", "%v", err)
	case err != nil:
		return err
	}
	last := &weirv1.ExportEnd{Complete: result.Next == nil, Keys: result.Keys, Unknown: result.Unknown}
	if result.Next != nil {
		last.After = answer.Place(in.GetRule(), o.Closed, result.Next)
	}
	return c.SendMsg(&weirv1.ExportResponse{End: last})
}

// exportStream makes the messages of an export.
type exportStream struct {
	call  *grpcserver.Call
	again func() error
	names []string // of the attributes
	keys  []*weirv1.ExportKey
	size  int // of keys, in bytes, about
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

// flush sends the keys.
func (s *exportStream) flush() error {
	select {
	case <-s.call.Leaving():
		return grpcserver.ErrStopping
	default:
	}
	if len(s.keys) == 0 {
		return nil
	}
	if err := s.again(); err != nil {
		return err
	}
	err := s.call.SendMsg(&weirv1.ExportResponse{Keys: s.keys})
	s.keys, s.size = nil, 0
	return err
}
