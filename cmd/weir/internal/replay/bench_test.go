package replay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// BenchmarkRun replays 100 000 lines through the five rules of the example, from
// addresses of very different traffic, over half a day.
func BenchmarkRun(b *testing.B) {
	const lines = 100_000
	rules, log := wordpress(b, nil), busySite(lines)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		report, err := replay.Run(b.Context(), rules, replay.Logs{Files: []replay.Log{text("visits", log)}})
		if err != nil || report.Lines != lines || report.Bad != 0 {
			b.Fatalf("got %d lines, %d bad, error %v, want %d lines", report.Lines, report.Bad, err, lines)
		}
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}

func busySite(lines int) string {
	random := rand.New(rand.NewPCG(1, 2))
	busy := rand.NewZipf(random, 1.1, 10, 999)
	var log strings.Builder
	for i := range lines {
		second := i / 3
		request := fmt.Sprintf("GET /2016/02/post-%d/?page=%d", random.IntN(500), random.IntN(9))
		if random.IntN(50) == 0 {
			request = "POST /wp-login.php"
		}
		fmt.Fprintf(&log, "10.0.%d.%d - - [01/Mar/2026:%02d:%02d:%02d +0000] \"%s HTTP/1.1\" 200 %d "+
			"\"https://blog.example/\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"\n",
			busy.Uint64()/250, busy.Uint64()%250, second/3600, second/60%60, second%60, request, random.IntN(50_000))
	}
	return log.String()
}
