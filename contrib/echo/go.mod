module github.com/weirhq/weir/contrib/echo

go 1.26.0

require github.com/weirhq/weir v0.1.0

require (
	github.com/labstack/echo/v5 v5.3.1
	github.com/weirhq/weir/rulefile v0.1.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
)
