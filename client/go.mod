module github.com/weirhq/weir/client

go 1.26.0

require (
	github.com/dunglas/httpsfv v1.1.2
	github.com/weirhq/weir v0.1.0
	github.com/weirhq/weir/api v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
