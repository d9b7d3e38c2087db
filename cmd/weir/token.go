package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make tokens, with which callers unlock a service",
		Long: `Make tokens, with which callers unlock a service.

weir serve --tokens FILE reads a file with one token a line. The file holds hashes
and no secrets:

  NAME sha256:HASH scopes=SCOPE,… [namespace=NAME]
  NAME cert:CERTIFICATE scopes=SCOPE,… [namespace=NAME]

The second form is for callers that show a client's certificate instead of a token
(--tls-client-ca): CERTIFICATE is a name in it. Empty lines and lines that start
with # are skipped. The service reads the file again when it changes. A token with a
namespace can use that one only, and makes no call that concerns all of them, such
as metrics and reload. Without one it can use all.

Scopes: decide (take, check, gate, settle, cancel, renew), record (record, refund),
read (usage, explain, rules, top, denials, overrides, events, export, metrics, the
page), override (set and remove overrides), admin (forget, set, unban, audit, saved
rules, reload, rotation of the secret, profiles).`,
	}
	cmd.AddCommand(newTokenNew())
	return cmd
}

func newTokenNew() *cobra.Command {
	var file, namespace string
	scopes := []string{}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and print it once",
		Long: `Make a token and print it. Only its hash goes into the tokens file, so that the
token cannot be shown again. Without --tokens the line for the file is printed, too.`,
		Example: `  weir token new shop --scopes decide,record --tokens tokens
  WEIR_TOKEN=$(weir token new ops --scopes read,admin --tokens tokens) weir usage …`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := access.CheckName(name); err != nil {
				return &usageError{"name " + err.Error()}
			}
			if len(scopes) == 0 {
				return &usageError{"--scopes is missing: want " + strings.Join(access.ScopeNames(), ", ") + ", or some of them"}
			}
			rights, err := access.ParseScopes(strings.Join(scopes, ","))
			if err != nil {
				return &usageError{"--scopes: " + err.Error()}
			}
			if namespace != "" {
				if err := access.CheckName(namespace); err != nil {
					return &usageError{"--namespace: " + err.Error()}
				}
			}
			token := access.NewToken()
			line := access.Line(name, token, rights, namespace)
			if file == "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "token: %s\nline for the tokens file:\n%s\n", token, line)
				return err
			}
			if err := addLine(file, name, line); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "tokens", "", "tokens `file` to add the token to; made if it does not exist")
	cmd.Flags().StringVar(&namespace, "namespace", "", "the only `namespace` that the token is for (default: all)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "`scopes` of the token: "+strings.Join(access.ScopeNames(), ", "))
	complete(cmd, "scopes", access.ScopeNames())
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// addLine adds a line to the tokens file, in which no token may have the name yet.
func addLine(file, name, line string) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for have := range bytes.Lines(old) {
		if words := bytes.Fields(have); len(words) > 0 && string(words[0]) == name {
			return fmt.Errorf("%s: there is a token called %s; remove its line first, or choose another name", file, name)
		}
	}
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		line = "\n" + line
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(line + "\n"); err != nil {
		err = errors.Join(err, f.Truncate(int64(len(old)))) // the service would refuse half a line, and all others with it
	}
	return errors.Join(err, f.Close())
}
