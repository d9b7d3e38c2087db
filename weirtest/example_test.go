package weirtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// blog is the program to test.
type blog struct {
	limit *weir.Limiter
	posts []string
}

// post publishes a text. If its author has to wait for less than a minute, it waits.
func (b *blog) post(ctx context.Context, author, text string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.limit.Wait(ctx, author); err != nil {
		return err
	}
	b.posts = append(b.posts, text)
	return nil
}

// testPosts is a test of the program: func TestPosts(t *testing.T) in its own files.
func testPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time is fake: nobody waits
		s := weirtest.NewStore()
		limit := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithStore(s), weir.WithName("posts"))
		defer limit.Close()
		b := &blog{limit: limit}

		s.Deny(time.Second, "posts", "ann")
		if err := b.post(t.Context(), "ann", "after a second"); err != nil {
			t.Errorf("got %v, want the post after a second", err)
		}
		s.Deny(time.Hour, "posts", "ann")
		if err := b.post(t.Context(), "ann", "too late"); !errors.Is(err, weir.ErrWouldWait) {
			t.Errorf("got %v, want no wait of an hour", err)
		}
		s.Fail(errors.New("connection refused")) // memory decides meanwhile
		if err := b.post(t.Context(), "bob", "in an outage"); err != nil {
			t.Errorf("got %v, want the post in an outage", err)
		}
		s.AssertTaken(t, 1, "posts", "ann")
		s.AssertTaken(t, 0, "posts", "bob")
	})
}

func Example() {
	_ = testPosts
}
