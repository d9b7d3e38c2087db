package grpcapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
)

// eventsRecheck is how often the caller of a stream of events is authenticated again.
const eventsRecheck = 15 * time.Second

// events serves the method Events.
func (a *API) events(c *grpcserver.Call) error {
	in := new(weirv1.EventsRequest)
	if err := receiveOne(c, in); err != nil {
		return err
	}
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return err
	}
	if !a.hub.Keeps() {
		return &answer.Problem{Status: http.StatusNotFound, Detail: "the service keeps no events: it runs with --events 0"}
	}
	caller := c.Caller
	f := events.Filter{Namespace: ns.Name(), Whole: caller.Namespace == "", Rule: in.GetRule(), Key: in.GetKey(), Share: caller.Share()}
	for _, kind := range in.GetKinds() {
		kinds, unknown := events.ParseKinds(kind)
		if kinds == nil {
			return fault.Newf("kinds", "%.80q: want some of %s", unknown, events.Names())
		}
		f.Kinds = append(f.Kinds, kinds...)
	}
	s, err := a.hub.Subscribe(c.Context(), f, in.GetAfter())
	switch {
	case errors.Is(err, events.ErrTooMany):
		return &access.Overload{Detail: err.Error()}
	case err != nil:
		return grpcserver.ErrStopping
	}
	defer s.Close()
	if err := c.SendHeader(nil); err != nil { // the caller sees what happens from now on
		return err
	}
	for {
		ctx, cancel := context.WithTimeout(c.Context(), eventsRecheck)
		list, missed, err := s.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, events.ErrEnded):
			return grpcserver.ErrStopping
		case err != nil && c.Context().Err() != nil:
			return c.Context().Err()
		}
		if err := again(c, ns, caller); err != nil {
			return err
		}
		if missed != 0 {
			if err := c.SendMsg(&weirv1.EventsResponse{Gap: true, Missed: max(missed, 0)}); err != nil {
				return err
			}
		}
		for _, e := range list {
			if err := c.SendMsg(&weirv1.EventsResponse{Id: e.ID, Kind: string(e.Kind), Json: e.JSON()}); err != nil {
				return err
			}
		}
	}
}

// again authenticates the caller of a long answer about ns again, as [answer.Again] does.
func again(c *grpcserver.Call, ns *namespace.Namespace, before *access.Holder) error {
	err := c.Again(access.Read)
	if err == nil && (ns.Gone() || c.Caller.Share() != before.Share()) {
		err = grpcserver.ErrStopping
	}
	return err
}
