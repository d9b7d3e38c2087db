package answer_test

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

func TestSpare(t *testing.T) {
	items := make([]weir.Item, 2, 3)
	few := []weir.Usage{{Key: "a"}, {Key: "b"}}
	items[0].Request.Attributes = []weir.Attribute{{Name: "user", Value: "a"}}
	items[0].Decision.Usages = few[:1] // the second is of an earlier decision
	items[1].Decision.Usages = make([]weir.Usage, 1000)
	if got := answer.Spare(items, 2); got != nil {
		t.Errorf("got room for %d items, want none", cap(got))
	}
	got := answer.Spare(items, 3)
	if len(got) != 0 || cap(got) != 3 {
		t.Fatalf("got %d items and room for %d, want 0 and 3", len(got), cap(got))
	}
	if few[0].Key != "" || few[1].Key != "" || items[0].Request.Attributes != nil {
		t.Errorf("got %+v and %+v, want nothing that a caller has sent", few, items[0].Request)
	}
	if n := cap(items[0].Decision.Usages); n != 2 {
		t.Errorf("got room for %d usages, want 2", n)
	}
	if n := cap(items[1].Decision.Usages); n != 0 {
		t.Errorf("got room for %d usages, want none of many", n)
	}
}
