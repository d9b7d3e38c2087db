package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"io/fs"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
)

// About states what a report is about.
type About struct {
	// Command is how the report was made, Version the version of weir, and Logs are the names of the logs.
	Command, Version string
	Logs             []string

	// Rules are the rules files: one, or the old and the new one.
	Rules []RulesFile
}

// RulesFile is the rules of a file, with its name and its hash.
type RulesFile struct {
	Name, Hash string
	Set        *rule.Set
}

// reportJSON is what the script of a report reads.
type reportJSON struct {
	Kind    string      `json:"kind"` // "replay", "compare" or "suggest"
	Command string      `json:"command"`
	Version string      `json:"version"`
	Logs    []string    `json:"logs"`
	Files   []rulesJSON `json:"files"`
	Report  any         `json:"report"`
}

type rulesJSON struct {
	Name  string        `json:"name"`
	Hash  string        `json:"hash"`
	Rules []answer.Rule `json:"rules"`
}

// shell is a report without its content. The policy allows the style and the script of the file alone, by their hashes,
// and no request. What clients have sent is in the data, which nothing executes, and whose characters < and > are escaped.
var shell = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{{.Title}} · weir</title>
<style>{{.Style}}</style>
</head>
<body>
<div id="page"></div>
<noscript><p>This report is drawn by JavaScript. Its numbers are in the last lines of the file, as weir {{.Kind}} --json prints them.</p></noscript>
<template>{{.Licences}}</template>
<script type="application/json" id="data">{{.Data}}</script>
<script>{{.Script}}</script>
</body>
</html>
`))

// Report writes a report as an HTML file, which needs no network. r is a [*replay.Report], a [*replay.Comparison] or
// a [*replay.Suggestion].
func Report(w io.Writer, r any, about About) error {
	d := reportJSON{Command: about.Command, Version: about.Version, Logs: about.Logs, Files: []rulesJSON{}, Report: r}
	switch r.(type) {
	case *replay.Report:
		d.Kind = "replay"
	case *replay.Comparison:
		d.Kind = "compare"
	case *replay.Suggestion:
		d.Kind = "suggest"
	default:
		return fmt.Errorf("no report: %T", r)
	}
	for _, f := range about.Rules {
		list := rulesJSON{Name: f.Name, Hash: f.Hash, Rules: []answer.Rule{}}
		for i := range f.Set.Len() {
			list.Rules = append(list.Rules, answer.RuleOf(f.Set.Rule(i)))
		}
		d.Files = append(d.Files, list)
	}
	style, script := text("built/report.css"), text("built/report.js")
	return shell.Execute(w, map[string]any{
		"Policy": "default-src 'none'; script-src " + source(script) + "; style-src " + source(style) + "; img-src data: blob:; base-uri 'none'; form-action 'none'",
		"Kind":   d.Kind, "Title": titles[d.Kind], "Style": template.CSS(style), "Script": template.JS(script), "Data": d, "Licences": text("built/licenses.txt"),
	})
}

// text returns an embedded file.
func text(name string) string {
	b, _ := fs.ReadFile(built, name) // which was there when the program was compiled
	return string(b)
}

// source returns text as a source that a policy allows.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// titles are the titles of reports.
var titles = map[string]string{"replay": "Replay", "compare": "Comparison", "suggest": "Suggestion"}
