package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

func newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				commit, date := server.Commit()
				return json.NewEncoder(cmd.OutOrStdout()).Encode(build{server.Version(), commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// build is the output of weir version --json. Commit and Date are empty when they are not known.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func version() string {
	text := fmt.Sprintf("weir %s, %s, %s/%s", server.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	commit, date := server.Commit()
	if commit != "" {
		text += ", commit " + commit
	}
	if date != "" {
		text += " of " + date
	}
	return text
}
