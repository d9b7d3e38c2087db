// Package files finds and reads the files that the service is given: rules, lists,
// tokens, certificates.
package files

import "path/filepath"

// Beside returns where path, as written in the file name, leads to: a relative
// path starts in that file's directory.
func Beside(name, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(name), path)
}
