package server_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// Clients without a token can cause these lines as often as they like. The log has
// one of each kind in ten seconds. All other lines pass.
func TestLinesAboutClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := server.ErrorLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		for range 3 {
			log.Printf("http2: server connection error from 192.0.2.1:99: connection error: ENHANCE_YOUR_CALM")
			log.Printf("http: TLS handshake error from 192.0.2.1:99: EOF")
			log.Printf("http2: server: error reading preface from client 192.0.2.1:99: bogus greeting")
			log.Printf("http: panic serving 192.0.2.1:99: no")
		}
		time.Sleep(10 * time.Second)
		log.Printf("http2: server connection error from 192.0.2.2:99: connection error: PROTOCOL_ERROR")
		time.Sleep(10 * time.Second)
		log.Printf("http2: server connection error from 192.0.2.3:99: connection error: PROTOCOL_ERROR")
		const want = `level=WARN msg="http2: server connection error from 192.0.2.1:99: connection error: ENHANCE_YOUR_CALM"
level=WARN msg="http: TLS handshake error from 192.0.2.1:99: EOF"
level=WARN msg="http2: server: error reading preface from client 192.0.2.1:99: bogus greeting"
level=WARN msg="http: panic serving 192.0.2.1:99: no"
level=WARN msg="http: panic serving 192.0.2.1:99: no"
level=WARN msg="http: panic serving 192.0.2.1:99: no"
level=WARN msg="http2: server connection error from 192.0.2.2:99: connection error: PROTOCOL_ERROR" more=2
level=WARN msg="http2: server connection error from 192.0.2.3:99: connection error: PROTOCOL_ERROR"
`
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
