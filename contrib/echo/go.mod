module github.com/weirhq/weir/contrib/echo

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.3.1
	github.com/weirhq/weir v0.1.0
)
