// Package limittext writes limits as JSON text, for data that outlives a process, and
// reads them.
package limittext

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirhq/weir/window"
)

// limit is a [window.Limit] as JSON. The zone of a calendar is written by its name
// and, for zones that are not known by a name, its distance from UTC.
type limit struct {
	window.Limit
	Unsettled int      // 1 for Limit.Release, which it replaces
	Release   struct{} `json:",omitzero"`
	Zones     [2]*zone `json:",omitempty"` // of Window and of After.Window
}

type zone struct {
	Name   string
	Offset int // in seconds, east of UTC
}

// offset returns how far z was east of UTC at the Unix epoch, in seconds.
func offset(z *time.Location) int {
	_, seconds := time.Unix(0, 0).In(z).Zone()
	return seconds
}

// Append appends l to b.
func Append(b []byte, l window.Limit) ([]byte, error) {
	out := limit{Limit: l}
	if l.Release {
		out.Unsettled = 1
	}
	for i, w := range []*window.Window{&out.Window, &out.After.Window} {
		if w.Zone != nil {
			out.Zones[i], w.Zone = &zone{w.Zone.String(), offset(w.Zone)}, nil
		}
	}
	text, err := json.Marshal(out)
	return append(b, text...), err
}

// Read reads what [Append] wrote. load returns a zone by its name, as
// [time.LoadLocation] does. A zone without a known name, or whose distance from UTC is
// not that of the zone with its name, has a fixed distance.
func Read(b []byte, load func(name string) (*time.Location, error)) (window.Limit, error) {
	var in limit
	if err := json.Unmarshal(b, &in); err != nil {
		return window.Limit{}, fmt.Errorf("limit: %w", err)
	}
	in.Limit.Release = in.Unsettled == 1
	for i, w := range []*window.Window{&in.Window, &in.After.Window} {
		z := in.Zones[i]
		if z == nil {
			continue
		}
		var err error
		if w.Zone, err = load(z.Name); err != nil || offset(w.Zone) != z.Offset {
			w.Zone = time.FixedZone(z.Name, z.Offset)
		}
	}
	return in.Limit, nil
}
