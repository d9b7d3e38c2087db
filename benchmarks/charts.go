package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/benchmarks/report"
)

// charts are the images of a run. They stay in memory until the run has ended, so
// that a run that fails leaves no image of its own beside those of another.
type charts struct {
	folder string // where they are written; empty: there are no charts
	run    string // the run's mark, which stands in the page and in each image
	images map[string]string
}

// draw keeps a chart, if the run has a folder for charts, and returns its path in
// the page.
func (s settings) draw(name string, c report.Chart) (string, error) {
	if s.charts.folder == "" || len(c.Bars) == 0 {
		return "", nil
	}
	c.Run = s.charts.run
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		return "", err
	}
	s.charts.images[name] = b.String()
	return "images/" + name, nil
}

// write writes the images.
func (c *charts) write() error {
	if c.folder == "" {
		return nil
	}
	err := os.MkdirAll(c.folder, 0o755)
	for name, image := range c.images {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.folder, name), []byte(image), 0o644))
	}
	return err
}
