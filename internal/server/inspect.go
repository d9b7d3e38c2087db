package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/store/redisstore"
)

// inspectTimeout is how long somebody who looks at a key is willing to wait.
const inspectTimeout = 5 * time.Second

// Inspect writes what the store at a URL keeps under the name of a key.
func Inspect(ctx context.Context, store, key string, out io.Writer) error {
	if store == "" {
		return errors.New("store: missing: give --store, or set WEIR_STORE")
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
