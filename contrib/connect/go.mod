module github.com/weirhq/weir/contrib/connect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/weirhq/weir v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/protobuf v1.36.12
)
