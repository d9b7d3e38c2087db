module github.com/weirhq/weir/store/redisstore

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/weirhq/weir v0.1.0
	github.com/weirhq/weir/internal/redistest v0.1.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
