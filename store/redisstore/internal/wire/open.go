package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// opened are servers with connections of their own.
type opened struct {
	Servers
	config *Config
	dialer *dialer

	sentinels *sentinels // nil without Sentinels
}

// openTime is how long Open waits for the first attempts to connect.
const openTime = 2 * time.Second

// Open connects to servers. It returns when the first attempt to connect to each
// of them has ended, or after openTime; attempts go on in the background. Servers
// that are out of reach now are no error; the error is that of a server which
// refuses.
func Open(ctx context.Context, config *Config, codec *script.Codec) (Servers, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
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
	if o.config.Mode == Cluster {
		return o.connectCluster(ctx, codec)
	}
	n := newNode(o.config.Addrs[0], o.config, codec)
	if o.config.Mode == Sentinel {
		n.addr = "primary " + o.config.Primary
		o.sentinels = &sentinels{config: o.config, dialer: o.dialer, node: n, addrs: o.config.Addrs}
		n.keep(o.dialer, o.sentinels.primary, true)
	} else {
		n.keep(o.dialer, always(n.addr), false)
	}
	o.Servers = alone{Node: n}
	n.manager.await(ctx)
	return n.manager.refused()
}

// connectCluster connects to the nodes that the configuration names, and then to
// those that these name.
func (o *opened) connectCluster(ctx context.Context, codec *script.Codec) error {
	c := newCluster(o.config, codec, o.dialer)
	o.Servers = c
	var named []*Node
	for _, addr := range o.config.Addrs {
		named = append(named, c.node(addr))
	}
	for _, n := range named {
		n.manager.await(ctx)
	}
	err := refusal(c.refresh(ctx))
	c.tasks.Go(c.watch)
	if err != nil || slices.ContainsFunc(named, func(n *Node) bool { return n.client() != nil }) {
		return err
	}
	for _, n := range named {
		if err := n.manager.refused(); err != nil {
			return fmt.Errorf("%s: %w", n.addr, err)
		}
	}
	return nil
}

// always returns a function that returns addr.
func always(addr string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return addr, nil }
}

// Close ends what waits for a connection, then all connections.
func (o *opened) Close() {
	o.dialer.close()
	o.Servers.Close()
	if o.sentinels != nil {
		o.sentinels.news.close()
		o.sentinels.close()
	}
}

// mustFit returns an error for a server that is part of a cluster, or a Sentinel:
// with the wrong URL nearly every call would fail. The server that Sentinels name
// must be a primary, which it may not be yet.
func mustFit(ctx context.Context, c rueidis.Client, mode Mode) error {
	// An old server does not know the command, and one that is not there gives
	// no answer.
	said, _ := c.Do(ctx, c.B().Arbitrary("HELLO").Build()).AsMap()
	word := func(name string) string {
		message := said[name]
		text, _ := message.ToString()
		return text
	}
	if text := word("mode"); text == "cluster" || text == "sentinel" {
		return &modeError{text}
	}
	if role := word("role"); mode == Sentinel && role != "" && role != "master" {
		return errNotPrimary
	}
	return nil
}

// modeError is the error of a server of another kind than the URL names.
type modeError struct{ mode string }

func (e *modeError) Error() string {
	return fmt.Sprintf("the server runs as a %[1]s: want redis+%[1]s://", e.mode)
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
	text, ok := said(err)
	if !ok || tooMany(text) {
		return nil
	}
	switch firstWord(text) {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "OOM", "TRYAGAIN":
		return nil
	}
	return err
}
