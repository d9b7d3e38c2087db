package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/window"
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Check, show, compact and back up a data directory",
		Long: `Work on the directory of weir serve --data. check, dump and backup only read it, also
while a service uses it. compact needs it for itself.`,
	}
	cmd.AddCommand(newDataCheck(), newDataDump(), newDataCompact(), newDataBackup())
	return cmd
}

// onData calls work with a directory, which must exist, because a command that only reads must
// not create it. It adds the directory's name to errors, prints events at once, and returns an
// error at the end if there was damage.
func onData(cmd *cobra.Command, dir string, work func(told func(datadir.Event)) error) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	places := 0
	err = work(func(e datadir.Event) {
		fmt.Fprintf(cmd.ErrOrStderr(), "weir: %s: %s\n", dir, e)
		if e.Level() >= slog.LevelWarn {
			places++
		}
	})
	switch {
	case errors.Is(err, datadir.ErrLocked): // which has the name
		return err
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	case places > 0:
		return fmt.Errorf("%s: damaged in %s; the command was carried out with all that can be read", dir, plural(places, "place"))
	}
	return nil
}

// damageStatus is a part of the help of commands that work on damaged directories.
const damageStatus = "\n\nExit status: 0 nothing is damaged, 1 something is: it is printed to standard error, with\nits file, offset and length."

func newDataCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Read all files of a data directory, and report what is damaged",
		Long: `Read all files of a data directory, check every batch, and print the files, the keys
of each rule, and what is damaged. Nothing is changed.

Exit status: 0 nothing is damaged, 1 something is.`,
		Example: `  weir data check /var/lib/weir
  weir data check --json /var/lib/weir`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r datadir.Report
			err := onData(cmd, args[0], func(func(datadir.Event)) (err error) { r, err = datadir.Check(args[0]); return err })
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(reportJSON(&r))
			} else {
				err = printReport(cmd, &r)
			}
			if err == nil && r.Damaged > 0 {
				err = fmt.Errorf("%s: damaged in %s; weir serve starts, and loads the rest", args[0], plural(int(r.Damaged), "place"))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printReport(cmd *cobra.Command, r *datadir.Report) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\tbytes\tbatches\tall keys")
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s\t%d\t%d\t%v\n", f.Name, f.Bytes, f.Batches, f.Whole)
	}
	fmt.Fprintln(w, "\nrule\tnamespace\tkeys\tlimit")
	for _, s := range r.Spaces {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", s.Name, s.Namespace, s.Keys, limitText(s.Limit))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range r.Damage {
		fmt.Fprintln(cmd.OutOrStdout(), "\n"+e.String())
	}
	return nil
}

// limitText returns a short text for a limit.
func limitText(l window.Limit) string {
	quota := "unlimited"
	if l.Quota != window.Unlimited {
		quota = fmt.Sprint(l.Quota)
	}
	return quota + " in " + l.Window.String()
}

// dataReport is a report in JSON.
type dataReport struct {
	Version uint32      `json:"version"`
	Files   []dataFile  `json:"files"`
	Rules   []dataSpace `json:"rules"`
	Keys    int64       `json:"keys"`
	Bytes   int64       `json:"bytes"`
	Damaged int64       `json:"damaged"`
	Notes   []string    `json:"notes"`
}

type dataFile struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Batches int64  `json:"batches"`
	Whole   bool   `json:"all_keys"`
}

type dataSpace struct {
	Namespace string `json:"namespace,omitempty"`
	Rule      string `json:"rule"`
	Keys      int64  `json:"keys"`
	Limit     string `json:"limit"`
}

func reportJSON(r *datadir.Report) dataReport {
	out := dataReport{Version: r.Version, Files: []dataFile{}, Rules: []dataSpace{}, Keys: r.Keys, Bytes: r.Bytes, Damaged: r.Damaged, Notes: []string{}}
	for _, f := range r.Files {
		out.Files = append(out.Files, dataFile(f))
	}
	for _, s := range r.Spaces {
		out.Rules = append(out.Rules, dataSpace{s.Namespace, s.Name, s.Keys, limitText(s.Limit)})
	}
	for _, e := range r.Damage {
		out.Notes = append(out.Notes, e.String())
	}
	return out
}

func newDataDump() *cobra.Command {
	rule := ""
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the keys of a data directory as JSON lines",
		Long: `Print each key that has not expired, as a line of JSON: its rule, what it has used
under the limit with which it was last written, and when it is unused again, in
seconds. Keys have no name in the directory: fingerprint is what identifies one. Keys
whose last state is damaged are missing, or have an older one.` + damageStatus,
		Example: `  weir data dump /var/lib/weir
  weir data dump --rule posts-per-hour /var/lib/weir`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := json.NewEncoder(cmd.OutOrStdout())
			return onData(cmd, args[0], func(told func(datadir.Event)) error {
				return datadir.Dump(args[0], func(e datadir.Entry) error {
					if rule != "" && e.Space != rule {
						return nil
					}
					return out.Encode(keyJSON(&e))
				}, told)
			})
		},
	}
	cmd.Flags().StringVar(&rule, "rule", "", "only the keys of the rule of this `name`")
	return cmd
}

// dataKey is a key in JSON.
type dataKey struct {
	Namespace   string  `json:"namespace,omitempty"`
	Rule        string  `json:"rule"`
	Fingerprint string  `json:"fingerprint"`
	Limit       string  `json:"limit"`
	Used        int64   `json:"used"`
	ResetAfter  float64 `json:"reset_after"` // -1: never
	Holds       int     `json:"holds,omitempty"`
	BannedUntil string  `json:"banned_until,omitempty"`
	Strikes     int64   `json:"strikes,omitempty"`
}

func keyJSON(e *datadir.Entry) dataKey {
	k := dataKey{
		Namespace: e.Namespace, Rule: e.Space, Fingerprint: fmt.Sprintf("%016x", e.Key), Limit: limitText(e.Limit),
		Used: e.Reading.Used, ResetAfter: e.Reading.ResetAfter.Seconds(), Holds: len(e.Reading.Holds), Strikes: e.Reading.Strikes,
	}
	if e.Reading.ResetAfter == window.Never {
		k.ResetAfter = -1
	}
	if e.Reading.BannedUntil > 0 {
		k.BannedUntil = e.Reading.BannedUntil.Time().UTC().Format(time.RFC3339)
	}
	return k
}

func newDataCompact() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "compact DIR",
		Short: "Write a data directory as one file of live keys",
		Long: `Write the keys that have not expired to one file, and remove the others. weir serve
does so by itself; compact is for a copy, or before a disk is replaced. No service may
use the directory. Damaged files are kept under their names with ".damaged".` + damageStatus,
		Example: `  weir data compact /var/lib/weir`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onData(cmd, args[0], func(told func(datadir.Event)) error {
				before, after, err := datadir.Compact(args[0], told)
				switch {
				case err != nil:
				case asJSON:
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]int64{"bytes_before": before, "bytes": after})
				default:
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d bytes before, %d bytes now\n", before, after)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newDataBackup() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "backup DIR TO",
		Short: "Copy a data directory, also while a service uses it",
		Long: `Copy a data directory to TO, which must not exist or be empty. A service may use the
directory: the copy has all that the service had written at one instant. To restore it, start
weir serve --data on the copy. The copy has the same secret, so keep it as private as
the directory. What is damaged is copied as it is: the copy is as good as the directory.` + damageStatus,
		Example: `  weir data backup /var/lib/weir /backup/weir-$(date +%F)`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onData(cmd, args[0], func(told func(datadir.Event)) error {
				bytes, err := datadir.Backup(args[0], args[1], told)
				switch {
				case err != nil:
				case asJSON:
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]int64{"bytes": bytes})
				default:
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d bytes copied to %s\n", bytes, args[1])
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
