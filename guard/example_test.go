package guard_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Message is a call of a framework that has no middleware yet.
type Message struct{ From, Text string }

// limit returns next behind a limit for each sender.
func limit(m *guard.Middleware[*Message], next func(*Message) string) func(*Message) string {
	return func(msg *Message) string {
		call, err := m.Take(context.Background(), msg)
		if err != nil {
			return guard.ProblemOf(err).Detail
		}
		defer m.End(call) // ends what the call holds
		if !call.Allowed {
			return fmt.Sprint(call.Problem().Status, " ", call.Problem().Detail)
		}
		return next(msg)
	}
}

// Middleware for a framework of one's own.
func ExampleKeys() {
	messages := weir.MustLimiter(weir.Sliding(1, time.Minute))
	defer messages.Close()
	m, err := guard.Keys(messages, func(msg *Message) string { return msg.From }, guard.Options[*Message]{Name: "messages"})
	if err != nil {
		panic(err)
	}
	answer := limit(m, func(msg *Message) string { return "heard: " + msg.Text })

	fmt.Println(answer(&Message{"ann", "hello"}))
	fmt.Println(answer(&Message{"ann", "hello again"}))
	fmt.Println(answer(&Message{"bob", "hi"}))
	fmt.Println(answer(&Message{"", "who am I?"}))
	// Output:
	// heard: hello
	// 429 denied by limit messages
	// heard: hi
	// guard: the call has no key for its limit
}
