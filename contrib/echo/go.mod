module github.com/weirhq/weir/contrib/echo

go 1.26.0

require github.com/weirhq/weir v0.0.0-00010101000000-000000000000

require github.com/labstack/echo/v5 v5.3.1

require github.com/goccy/go-yaml v1.19.2 // indirect

replace github.com/weirhq/weir => ../../
