package conn_test

import (
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
)

// Messages as Sentinels of Redis 7 publish them.
func TestSuccessorIn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ channel, message, want string }{
		{"+switch-master", "weir 127.0.0.1 6379 127.0.0.1 6380", "127.0.0.1:6380"},
		{"+switch-master", "weir 2001:db8::1 6379 2001:db8::2 6380", "[2001:db8::2]:6380"},
		{"+switch-master", "other 127.0.0.1 6379 127.0.0.1 6380", ""},
		{"+switch-master", "weir 127.0.0.1 6379", ""},
		{"+failover-state-wait-promotion", "slave 127.0.0.1:6380 127.0.0.1 6380 @ weir 127.0.0.1 6379", "127.0.0.1:6380"},
		{"+failover-state-wait-promotion", "slave a.example:6380 a.example 6380 @ weir 127.0.0.1 6379", "a.example:6380"},
		{"+failover-state-wait-promotion", "slave 127.0.0.1:6380 127.0.0.1 6380 @ other 127.0.0.1 6379", ""},
		{"+failover-state-wait-promotion", "", ""},
		{"+sdown", "slave 127.0.0.1:6380 127.0.0.1 6380 @ weir 127.0.0.1 6379", ""},
	} {
		got, ok := conn.SuccessorIn(test.channel, test.message, "weir")
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s %q: got %q and %v, want %q", test.channel, test.message, got, ok, test.want)
		}
	}
}
