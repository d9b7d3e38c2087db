module github.com/weirhq/weir/internal/pgtest

go 1.26.0
