package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/events"
)

const (
	heartbeat   = 15 * time.Second // the interval between two comments of a stream without events
	streamWrite = 10 * time.Second // how long a reader may take for one write
	maxEventID  = 64
)

// stream sends events as they happen (server-sent events).
func (a *API) stream(x *exchange, w http.ResponseWriter, r *http.Request) error {
	f, after, err := a.eventFilter(x, r)
	if err != nil {
		return err
	}
	if err := x.Reserve(access.StreamBytes); err != nil {
		return err
	}
	s, err := a.events.Subscribe(r.Context(), f, after)
	switch {
	case errors.Is(err, events.ErrTooMany):
		return &access.Overload{Detail: err.Error()}
	case err != nil:
		return &answer.Problem{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	defer s.Close()
	defer answer.Stream(w, streamWrite)()
	b := append(x.out[:0], ": weir\n"...)
	if id := s.After(); id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(b, '\n')
	for r.Method != http.MethodHead {
		if answer.Again(a.auth, r, x.namespace, x.Caller) != nil {
			return nil
		}
		if answer.Send(w, b, streamWrite) != nil {
			return nil // the reader is gone, or too slow
		}
		ctx, cancel := context.WithTimeout(r.Context(), heartbeat)
		list, missed, err := s.Next(ctx)
		cancel()
		switch {
		case err == nil:
			b = appendEvents(b[:0], list, missed)
		case r.Context().Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return nil
		default:
			b = append(b[:0], ":\n\n"...)
		}
	}
	return nil
}

// appendEvents appends events, and before them a gap if some were missed.
func appendEvents(b []byte, list []*events.Event, missed int64) []byte {
	switch {
	case missed < 0:
		b = append(b, "event: gap\ndata: {}\n\n"...)
	case missed > 0:
		b = append(strconv.AppendInt(append(b, "event: gap\ndata: {\"missed\":"...), missed, 10), "}\n\n"...)
	}
	for _, e := range list {
		b = append(append(b, "id: "...), e.ID...)
		b = append(append(b, "\nevent: "...), e.Kind...)
		b = append(append(append(b, "\ndata: "...), e.JSON()...), "\n\n"...)
	}
	return b
}

// eventFilter reads ?kind=denied,ban&rule=NAME&key=KEY, and the id of the last event that the reader has.
func (a *API) eventFilter(x *exchange, r *http.Request) (f events.Filter, after string, err error) {
	if !a.events.Keeps() {
		return f, "", &answer.Problem{Status: http.StatusNotFound, Detail: "the service keeps no events: it runs with --events 0"}
	}
	f = events.Filter{Namespace: x.namespace.Name(), Whole: x.Caller.Namespace == "", Share: x.Caller.Share()}
	err = parametersOnce(r.URL.RawQuery, func(param, value string) error {
		switch param {
		case "kind":
			unknown := ""
			if f.Kinds, unknown = events.ParseKinds(value); f.Kinds == nil {
				return badParameter(param, fmt.Sprintf("%.64q: want some of %s, with commas between them", unknown, events.Names()))
			}
		case "rule":
			f.Rule = value
		case "key":
			f.Key = value
		case "last_event_id":
			after = value
		default:
			return badParameter(param, "is unknown; want kind, rule, key and last_event_id")
		}
		return nil
	})
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id
	}
	if err == nil && len(after) > maxEventID {
		err = badParameter("last_event_id", "is too long; want the id of an event")
	}
	return f, after, err
}
