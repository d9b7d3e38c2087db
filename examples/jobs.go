//go:build ignore

// The recipe docs/recipes/jobs.md as a program: go run examples/jobs.go
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// A later is the error of a job that has to wait. With river, return
// river.JobSnooze(l.wait) in its place. With asynq, return the error: Config.RetryDelayFunc
// returns its wait, and Config.IsFailure returns false for it.
type later struct{ wait time.Duration }

func (l later) Error() string { return fmt.Sprintf("try again in %v", l.wait) }

// work runs a job while it holds a slot of its tenant. Call it in Worker.Work of river, or in
// middleware of asynq (ServeMux.Use), with the job as what it runs.
func work(ctx context.Context, e *weir.Engine, kind, tenant string, job func(context.Context) error) error {
	r := weir.Request{Attributes: weir.Attributes("action", "job", "kind", kind, "tenant", tenant)}
	d, err := e.Take(ctx, r)
	if err != nil {
		return err
	}
	if !d.Allowed {
		return later{min(d.RetryAfter, 5*time.Second)} // a slot is usually free before RetryAfter
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- job(working) }()
	renew := time.NewTicker(20 * time.Second)
	defer renew.Stop()
	for {
		select {
		case err := <-done:
			_, settling := e.Settle(context.WithoutCancel(ctx), d.Receipt, r)
			return errors.Join(err, settling)
		case <-renew.C:
			still, err := e.Renew(ctx, d.Receipt, r)
			lost := func(u weir.Usage) bool { return u.Rule == "tenant-jobs" && !u.Held }
			if err == nil && !still.Degraded && slices.ContainsFunc(still.Usages, lost) {
				stop(errors.New("the slot is lost"))
			}
		}
	}
}

func main() {
	rules, err := rulefile.Load("examples/jobs.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	var nested func(n int) func(context.Context) error
	nested = func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			if n == 4 {
				return nil
			}
			fmt.Println("job", n+1, work(ctx, e, "sync", "acme", nested(n+1)))
			return nil
		}
	}
	fmt.Println("job 1", work(ctx, e, "sync", "acme", nested(1)))
}

// It prints:
//
// job 4 try again in 5s
// job 3 <nil>
// job 2 <nil>
// job 1 <nil>
