package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows a bar with the lines per second and the time left, if the output is a
// terminal.
type progress struct {
	out   io.Writer
	total int64 // bytes of all logs; -1 is unknown
	bar   *progressbar.ProgressBar
	began time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, began: time.Now()} }

// start begins the bar.
func (p *progress) start() {
	if !isTerminal(p.out) {
		return
	}
	p.bar = progressbar.NewOptions64(p.total,
		progressbar.OptionSetWriter(p.out), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true), progressbar.OptionFullWidth())
}

// read counts bytes of the logs. It is called on the goroutine that reads.
func (p *progress) read(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // the bar is lost if the terminal is
	}
}

// show shows the number of lines.
func (p *progress) show(lines int64) {
	if p.bar != nil {
		rate := float64(lines) / time.Since(p.began).Seconds()
		p.bar.Describe(fmt.Sprintf("%s, %.0f a second", plural(lines, "line"), rate))
	}
}

// end clears the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
