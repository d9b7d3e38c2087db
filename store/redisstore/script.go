package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
	"sync/atomic"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script holds the code of the kinds that a call needs and of no others: the
// functions of a script are made anew at each call. Which they are is a set of
// bits, one a file, in the order of the files.
type kinds uint8

var kindFiles = [...]string{"sliding", "cells", "period", "bucket", "members", "after"}

const (
	sliding kinds = 1 << iota
	cells
	period
	bucket
	members
	after
)

// script is a program in Lua and the hash by which a server knows it.
type script struct{ text, sha string }

// scripts are those that were needed so far, made on first use.
type scripts [1 << len(kindFiles)]atomic.Pointer[script]

// of is the script for calls with these kinds.
func (s *scripts) of(k kinds) *script {
	if made := s[k].Load(); made != nil {
		return made
	}
	files := []string{"head"}
	for i, file := range kindFiles {
		if k&(1<<i) != 0 {
			files = append(files, file)
		}
	}
	made := newScript(append(files, "call")...)
	s[k].Store(made)
	return made
}

// newScript joins files without their comments, which a server would only keep
// in memory.
func newScript(files ...string) *script {
	var text strings.Builder
	for _, file := range files {
		b, err := luaFiles.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // the files are part of this package
		}
		for line := range strings.Lines(string(b)) {
			code, _, _ := strings.Cut(line, "-- ")
			if code = strings.TrimSpace(code); code != "" {
				text.WriteString(code)
				text.WriteByte('\n')
			}
		}
	}
	sum := sha1.Sum([]byte(text.String()))
	return &script{text.String(), hex.EncodeToString(sum[:])}
}
