package server

import (
	"log/slog"

	"github.com/weirhq/weir/store/redisstore"
)

// NewReport is what logs how the nodes of a store do.
func NewReport() func(*slog.Logger, []redisstore.Node) { return outOfReach{}.report }
