package server

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/redisstore"
)

// inspectTimeout is the maximum duration of an inspection.
const inspectTimeout = 5 * time.Second

// Inspect writes what the store at a URL holds under the name of a key.
func Inspect(ctx context.Context, store, key string, out io.Writer) error {
	if store == "" {
		return fault.Newf("store", "missing: give --store, or set WEIR_STORE")
	}
	where, err := redisstore.Parse(store)
	if err != nil {
		return err
	}
	where.Timeout = inspectTimeout
	s, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	text, err := s.Inspect(ctx, key)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text)
	return err
}
