package limittext_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/limittext"
	"github.com/weirhq/weir/window"
)

// Every field of every limit comes back. A field that is added to a limit is covered
// at once.
func TestLimits(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var in window.Limit
		fill(r, reflect.ValueOf(&in).Elem())
		in.Window.Zone, in.After.Window.Zone = berlin, nil
		b, err := limittext.Append(nil, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := limittext.Read(b, time.LoadLocation)
		if err != nil {
			t.Fatal(err)
		}
		if out.Window.Zone.String() != "Europe/Berlin" {
			t.Errorf("got zone %v", out.Window.Zone)
		}
		if out.Window.Zone = berlin; out != in {
			t.Errorf("got  %+v\nwant %+v", out, in)
		}
	}
	for _, name := range []string{"here", "", "UTC", "Europe/Berlin"} { // some of them are names of other zones
		odd := window.Limit{Quota: 1, Window: window.Calendar(window.Day, time.FixedZone(name, 7*3600))}
		b, err := limittext.Append(nil, odd)
		if err != nil {
			t.Fatal(err)
		}
		out, err := limittext.Read(b, time.LoadLocation)
		if err != nil {
			t.Fatal(err)
		}
		if _, offset := time.Unix(0, 0).In(out.Window.Zone).Zone(); out.Window.Zone.String() != name || offset != 7*3600 {
			t.Errorf("got zone %q %d, want %q 7 hours east", out.Window.Zone, offset, name)
		}
	}
}

// fill sets all fields of v but zones to random values.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64())
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer: // a zone
	default:
		panic("a field of a kind that this test cannot fill: " + v.Type().String())
	}
}

// A limit whose holds end without counting is read from the text of older programs, and
// written as they read it.
func TestRelease(t *testing.T) {
	t.Parallel()
	const text = `{"Quota":5,"Measure":0,"Window":{"Kind":0,"Length":60000000},"Hold":1000000,"Unsettled":1,"MaxHolds":0}`
	l, err := limittext.Read([]byte(text), time.LoadLocation)
	if err != nil || !l.Release || l.Hold != time.Millisecond || l.Quota != 5 {
		t.Fatalf("got %+v, %v", l, err)
	}
	if b, _ := limittext.Append(nil, l); !strings.Contains(string(b), `"Unsettled":1`) || strings.Contains(string(b), "Release") {
		t.Errorf("got %s", b)
	}
}
