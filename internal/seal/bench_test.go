package seal_test

import (
	"testing"

	"github.com/weirhq/weir/internal/seal"
)

// BenchmarkSeal seals a receipt, and hashes what a take has counted in one rule.
//
//	go test -run '^$' -bench Seal ./internal/seal
func BenchmarkSeal(b *testing.B) {
	key := keyOf(seal.Secret{7: 3})
	space, member := "llm-calls\x05count\x07sliding", []byte("team-4711")
	b.Run("seal", func(b *testing.B) {
		r := some
		for b.Loop() {
			r = key.Seal(r)
		}
	})
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := key.Digest()
			d.Text("")
			d.Text(space)
			d.Bytes(member)
			d.Bytes(nil)
			d.Number(1)
			_ = d.Sum()
		}
	})
}
