package rpcwire_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// common is the decision of a take that one rule admits.
var common = weir.Decision{Allowed: true, Outcome: rule.Allow, Usages: []weir.Usage{{
	Rule: "calls", Key: "user:0000000000000000042", Hits: 1,
	Result: window.Result{Allowed: true, Quota: 1_000_000, Used: 1, Remaining: 999_999, ResetAfter: time.Hour},
}}}

func BenchmarkRequest(b *testing.B) {
	r := weir.Request{Attributes: weir.Attributes("user", "user:0000000000000000042")}
	text := rpcwire.AppendRequest(nil, weir.Take, &r)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = rpcwire.AppendRequest(text[:0], weir.Take, &r)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		var ask rpcwire.Ask
		var attrs []weir.Attribute
		for b.Loop() {
			attrs, _ = ask.ReadRequest(text, weir.Take, false, attrs[:0])
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	text := rpcwire.AppendDecideDecision(nil, &common)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = rpcwire.AppendDecideDecision(text[:0], &common)
		}
	})
	var a rpcwire.Answers
	if err := a.ReadDecide(text); err != nil {
		b.Fatal(err)
	}
	for name, d := range map[string]*weir.Decision{"read": nil, "read again": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				to := d
				if to == nil {
					to = new(weir.Decision)
				}
				if _, err := rpcwire.ReadAnswer(a.Answers[0], to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
