module github.com/weirhq/weir/internal/redistest

go 1.26.0
