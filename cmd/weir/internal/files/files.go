// Package files finds and reads the files that the service is given: rules, lists,
// tokens, certificates.
package files

import "path/filepath"

// RelativeTo resolves path, as it is written in the file called name: a relative path starts
// in that file's directory.
func RelativeTo(name, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(name), path)
}
