package rulefile

import (
	"regexp"
	"strings"
	"time"
)

// timezone reads the name of a time zone. It returns UTC for one that is wrong.
func (p *pass) timezone(n *node) *time.Location {
	name := p.text(n)
	if name == "" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	city := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	switch {
	case name == "Local":
		p.fault(n, "timezone is Local, which differs from machine to machine: want a name such as Europe/Berlin")
	case err == nil:
		return zone
	case ofChina[city]:
		p.fault(n, "unknown timezone %q: China uses Asia/Shanghai", name)
	case name == "CST":
		p.fault(n, "unknown timezone %q: it stands for several: want a name such as Asia/Shanghai or America/Chicago", name)
	case fixed(name) == "Etc/GMT-8":
		p.fault(n, "unknown timezone %q: China uses Asia/Shanghai; the same everywhere is Etc/GMT-8, with its sign reversed", name)
	case fixed(name) != "":
		p.fault(n, "unknown timezone %q: want a name such as Europe/Berlin, or %s, with its sign reversed", name, fixed(name))
	default:
		p.fault(n, "unknown timezone %q: want a name such as Europe/Berlin, or UTC", name)
	}
	return time.UTC
}

// ofChina has names that are used for the time of China and are not in the
// database, in lower case and without a continent.
var ofChina = map[string]bool{
	"beijing": true, "china": true, "guangzhou": true, "shenzhen": true, "hangzhou": true, "chengdu": true,
	"北京": true, "北京时间": true, "上海": true, "中国": true, "东八区": true,
}

// offset matches a distance from UTC in hours.
var offset = regexp.MustCompile(`^(?i:UTC|GMT)?([+-])0?([0-9]{1,2})(?::?00)?$`)

// fixed returns the name of the zone that is always as far from UTC as name says,
// or "". The database counts these zones westward: Etc/GMT-8 is UTC+8.
func fixed(name string) string {
	m := offset.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	zone := "Etc/GMT-" + m[2]
	if m[1] == "-" {
		zone = "Etc/GMT+" + m[2]
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return ""
	}
	return zone
}
