package wire

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// verify checks that the server behind c is the right one, and asks it for its time.
func (n *Node) verify(ctx context.Context, c rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if n.config.Mode != Cluster {
		if err := mustFit(ctx, c, n.config.Mode); err != nil {
			return err
		}
	}
	return unready(n.askTime(ctx, c))
}

// loadTogether is how many programs a server gets at once: it decides nothing
// while it reads them.
const loadTogether = 8

// load makes sure that the server behind c has all programs. Each part of them has
// connectTimeout: a server on a busy machine needs longer for all.
func (n *Node) load(ctx context.Context, c rueidis.Client) error {
	programs, late := n.codec.Programs(), []string{script.Expired()}
	commands := make([]rueidis.Completed, len(programs))
	for i, p := range programs {
		commands[i] = evaluate(c, p, nil, late, false)
	}
	var missing []rueidis.Completed
	for i, reply := range within(ctx, c, commands) {
		err := reply.Error()
		n.loaded[programs[i].Number].Store(err == nil || noScript(err))
		if noScript(err) {
			missing = append(missing, evaluate(c, programs[i], nil, late, true))
		} else if err := unready(err); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(missing, loadTogether) {
		for _, reply := range within(ctx, c, some) {
			if err := unready(reply.Error()); err != nil {
				return err
			}
		}
	}
	return nil
}

// within sends commands, and waits for the replies for connectTimeout at most.
func within(ctx context.Context, c rueidis.Client, commands []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.DoMulti(ctx, commands...)
}

// unready returns err if a server that answers with it does not take calls: not
// yet, or because a right is missing. Other errors are those of the calls, and of
// the checks of the server.
func unready(err error) error {
	if text, ok := said(err); ok {
		switch reasonSaid(text) {
		case reasonLoading, reasonBusy, reasonRefused:
		default:
			return nil
		}
	}
	return err
}
