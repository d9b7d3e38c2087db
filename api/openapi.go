// Package api holds descriptions of weir's API for programs.
package api

import _ "embed"

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the description of the HTTP API, an OpenAPI 3.1 document in YAML.
func OpenAPI() string { return openAPI }
