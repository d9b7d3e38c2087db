package rulefile

import (
	_ "embed"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
)

// zones lists the names of time zones that an unknown one is compared with.
//
//go:embed zones.txt
var zones string

// timezone reads the name of a time zone. It returns UTC for one that is wrong.
func (p *pass) timezone(n *node) *time.Location {
	name := p.text(n)
	if name == "" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	switch {
	case name == "Local":
		p.fault(n, "timezone is Local, which differs from machine to machine: want a name such as Europe/Berlin")
	case err == nil:
		return zone
	case cityZone(name) != "":
		p.fault(n, "unknown timezone %q: did you mean %q?", name, cityZone(name))
	case fault.DidYouMean(name, strings.Fields(zones)) != "":
		p.fault(n, "%s", unknown("timezone", name, strings.Fields(zones)))
	default:
		p.fault(n, "unknown timezone %q: want a name such as Europe/Berlin, or UTC", name)
	}
	return time.UTC
}

// cityZone returns the time zone of a city: Asia/Shanghai for "Shanghai", or "".
func cityZone(city string) string {
	city = "/" + strings.ReplaceAll(strings.ToLower(city), " ", "_")
	for _, zone := range strings.Fields(zones) {
		if strings.HasSuffix(strings.ToLower(zone), city) {
			return zone
		}
	}
	return ""
}
