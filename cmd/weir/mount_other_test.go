//go:build !linux

package main

import (
	"errors"
	"testing"
)

func mountSmall(string, int) error     { return errors.ErrUnsupported }
func remount(string, bool) error       { return errors.ErrUnsupported }
func unmount(t *testing.T, dir string) { t.Errorf("%s is not mounted", dir) }
func fillDisk(string) error            { return errors.ErrUnsupported }

func mountHung(t *testing.T, _ string) { t.Skip("needs FUSE on Linux") }
