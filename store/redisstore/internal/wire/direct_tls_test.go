package wire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// With TLS a server that stops reading keeps no caller longer than its time: neither the
// one whose write ends early, nor the next one.
func TestServerWithTLSStopsReading(t *testing.T) {
	t.Parallel()
	cert := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		client := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
		go func() {
			server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
			if err := server.Handshake(); err != nil {
				t.Error(err)
			}
		}()
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		d := wire.NewDirect(client)
		began := time.Now()
		for caller := range 2 {
			if !d.Take() {
				break // it is lost
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, sent, err := d.Eval(ctx, "a"); sent || err == nil {
				t.Errorf("caller %d: got sent=%v and error %v, want an error of a command that was not sent", caller, sent, err)
			}
			cancel()
		}
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("the callers waited for %v, want 50 ms", took)
		}
		if !d.Lost() {
			t.Error("the connection is open, and nothing can be written to it")
		}
	})
}

// certificate returns a certificate that signs itself.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
