// Command notzdata prints the length of a day in Berlin. The test runs it where
// there is no time zone database but the one that is linked in.
package main

import (
	"fmt"
	"os"
	"time"
	_ "time/tzdata"

	"github.com/weirhq/weir/window"
)

func main() {
	if _, err := os.Stat("/usr/share/zoneinfo"); err == nil {
		fmt.Println("there is a time zone database here")
		return
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	day := window.Calendar(window.Day, zone)
	start, end := day.PeriodBounds(window.At(time.Date(2026, 10, 25, 12, 0, 0, 0, time.UTC)))
	fmt.Println(end.Sub(start))
}
