package server

import (
	"log/slog"

	"github.com/weirhq/weir/store/redisstore"
)

// NewReport returns the function that logs the state of a store's nodes.
func NewReport() func(*slog.Logger, []redisstore.Node) { return outOfReach{}.report }
