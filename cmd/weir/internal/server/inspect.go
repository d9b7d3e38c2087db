package server

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/fault"
)

// inspectTimeout is the maximum duration of an inspection.
const inspectTimeout = 5 * time.Second

// Inspect writes what the store at a URL holds under the name of a key.
func Inspect(ctx context.Context, store, key string, out io.Writer) error {
	if store == "" {
		return fault.Newf("store", "missing: give --store, or set WEIR_STORE")
	}
	at, err := stores.Parse(store)
	if err != nil {
		return err
	}
	s, err := at.Open(ctx, stores.Options{Timeout: inspectTimeout})
	if err != nil {
		return err
	}
	defer s.Store.Close()
	if s.Inspect == nil {
		return fmt.Errorf("%s: this store cannot be inspected", s.Location)
	}
	text, err := s.Inspect(ctx, key)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text)
	return err
}
