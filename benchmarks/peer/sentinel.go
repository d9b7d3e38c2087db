package peer

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	stat "github.com/alibaba/sentinel-golang/core/stat/base"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/alibaba/sentinel-golang/util"
)

const sentinelModule = "github.com/alibaba/sentinel-golang"

// sentinelMemory returns Sentinel's window of buckets, used as a limiter, and its
// check of hot parameters.
func sentinelMemory() []Peer {
	return []Peer{{
		Name: "Sentinel LeapArray in a sync.Map", Module: sentinelModule, Keys: true, Clock: true,
		Note: "10 buckets; Count, then AddCount",
		New: func(c Config) (Limiter, error) {
			window := func() *stat.BucketLeapArray {
				return stat.NewBucketLeapArray(buckets, uint32(c.Window.Milliseconds()))
			}
			l := each(window, func(w *stat.BucketLeapArray) bool {
				if w.Count(base.MetricEventPass) >= c.Quota {
					return false
				}
				w.AddCount(base.MetricEventPass, 1)
				return true
			})
			if c.Now != nil { // the package has one clock
				util.SetClock(sentinelClock(c.Now))
				l.Close = func() { util.SetClock(util.NewRealClock()) }
			}
			return l, nil
		},
	}, {
		Name: "Sentinel hot-param check", Module: sentinelModule, Keys: true,
		NoTrace: "its windows have whole seconds, and its clock cannot be set back",
		Note:    "for two million parameters; Entry and Exit",
		New:     newHotParam,
	}}
}

// hotParams numbers the resources, whose names are global.
var hotParams atomic.Int64

func newHotParam(c Config) (Limiter, error) {
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel + 1) // it logs to standard output
	resource := fmt.Sprint("resource ", hotParams.Add(1))
	// Its windows have whole seconds.
	rule := &hotspot.Rule{
		Resource: resource, MetricType: hotspot.QPS, ControlBehavior: hotspot.Reject,
		Threshold: c.Quota, DurationInSec: max(1, int64(c.Window/time.Second)), ParamsMaxCapacity: 2_000_000,
	}
	if _, err := hotspot.LoadRulesOfResource(resource, []*hotspot.Rule{rule}); err != nil {
		return Limiter{}, err
	}
	return Limiter{
		Allow: func(key string) bool {
			e, blocked := api.Entry(resource, api.WithTrafficType(base.Inbound), api.WithArgs(key))
			if blocked != nil {
				return false
			}
			e.Exit()
			return true
		},
		Close: func() { _ = hotspot.ClearRulesOfResource(resource) }, // it cannot fail
	}, nil
}

// sentinelClock is a clock that only supports reading.
type sentinelClock func() time.Time

func (c sentinelClock) Now() time.Time            { return c() }
func (sentinelClock) Sleep(time.Duration)         {}
func (c sentinelClock) CurrentTimeMillis() uint64 { return uint64(c().UnixMilli()) }
func (c sentinelClock) CurrentTimeNano() uint64   { return uint64(c().UnixNano()) }
