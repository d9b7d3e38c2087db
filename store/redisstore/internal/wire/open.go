package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// opened are servers with connections of their own.
type opened struct {
	Servers
	config *Config
	dialer *dialer
	tasks  sync.WaitGroup
}

// Open connects to servers. Servers that are out of reach now are no error; the
// error is that of a server which refuses.
func Open(ctx context.Context, config *Config, codec *script.Codec) (Servers, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	o := &opened{config: config, dialer: newDialer()}
	if err := o.connect(ctx, codec); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// connect makes the nodes. It returns the error of a server that refuses.
func (o *opened) connect(ctx context.Context, codec *script.Codec) error {
	switch o.config.Mode {
	case Cluster:
		c := newCluster(o.config, codec, o.dialer)
		o.Servers = c
		for _, addr := range o.config.Addrs {
			c.node(addr)
		}
		err := c.refresh(ctx)
		c.tasks.Go(c.watch)
		return refusal(err)
	case Sentinel:
		n := newNode("primary "+o.config.Primary, o.config, codec, nil)
		o.Servers = alone{Node: n}
		return o.findPrimary(ctx, n)
	default:
		addr := o.config.Addrs[0]
		n := newNode(addr, o.config, codec, o.config.connect(addr, o.dialer))
		o.Servers = alone{Node: n}
		c := *n.client.Load()
		return refusal(errors.Join(n.askTime(ctx, c), mustBeSingle(ctx, c)))
	}
}

// Close ends what waits for a connection, then all connections.
func (o *opened) Close() {
	o.dialer.close()
	o.tasks.Wait()
	o.Servers.Close()
}

// mustBeSingle returns an error for a server that is part of a cluster, or a
// Sentinel: with the wrong URL nearly every call would fail.
func mustBeSingle(ctx context.Context, c rueidis.Client) error {
	// An old server does not know the command, and one that is not there gives
	// no answer.
	said, _ := c.Do(ctx, c.B().Arbitrary("HELLO").Build()).AsMap()
	mode, known := said["mode"]
	if !known {
		return nil
	}
	if text, _ := mode.ToString(); text == "cluster" || text == "sentinel" {
		return &modeError{text}
	}
	return nil
}

// modeError is the error of a server of another kind than the URL names.
type modeError struct{ mode string }

func (e *modeError) Error() string {
	return fmt.Sprintf("the server runs as a %[1]s: want redis+%[1]s://", e.mode)
}

// findPrimary asks the Sentinels for the primary. While they are out of reach it
// asks again in the background.
func (o *opened) findPrimary(ctx context.Context, n *Node) error {
	options := o.config.options(o.config.Addrs, o.dialer)
	client, err := rueidis.NewClient(options)
	if err == nil {
		n.client.Store(&client)
		return refusal(n.askTime(ctx, client))
	}
	if err := refusal(err); err != nil {
		return err
	}
	o.tasks.Go(func() {
		for {
			select {
			case <-o.dialer.ctx.Done():
				return
			case <-time.After(connectTimeout):
			}
			if client, err := rueidis.NewClient(options); err == nil {
				n.client.Store(&client)
				return
			}
		}
	})
	return nil
}

// refusal returns err if a server refuses and will refuse again, or is not the
// right one, and nil for all other errors.
func refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	var mode *modeError
	switch {
	case errors.As(err, &mode):
		return mode
	case errors.As(err, &certificate):
		return err
	}
	var said *rueidis.RedisError
	if !errors.As(err, &said) {
		return nil
	}
	switch firstWord(said.Error()) {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "OOM", "TRYAGAIN":
		return nil
	}
	return err
}
