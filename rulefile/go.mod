module github.com/weirhq/weir/rulefile

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/weirhq/weir v0.1.0
)

require golang.org/x/text v0.42.0 // indirect
