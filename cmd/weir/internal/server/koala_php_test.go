package server_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The client in examples gets every kind of answer, in both of its ways.
func TestKoalaPHP(t *testing.T) {
	t.Parallel()
	php, err := exec.LookPath("php")
	if err == nil {
		err = exec.CommandContext(t.Context(), php, "-r", "exit(extension_loaded('curl') ? 0 : 1);").Run()
	}
	if err != nil {
		t.Skipf("php with curl: %v: install php-cli and php-curl to run this test", err)
	}
	const home = "../../../../examples/koala-php/"
	k := startKoala(t, home+"koala_rule.conf", nil)
	got, err := exec.CommandContext(t.Context(), php, home+"try.php", k.addr).CombinedOutput()
	if err != nil {
		t.Fatalf("got %v\n%s", err, got)
	}
	const lines = `  alive: yes
  unknown: Allow err=0 rule=0 captcha=0/0
  blocked: Deny err=10 rule=104 captcha=0/0
  post: Allow err=0 rule=0 captcha=0/0
  post again: Deny err=10 rule=501 captcha=0/0
  log in: Allow err=0 rule=0 captcha=0/0
  written: OK
  log in again: Vcode err=11 rule=601 captcha=1/4
  complete: Deny err=10 rule=104 captcha=0/0
  complete: Deny err=10 rule=501 captcha=0/0
  a of four: Deny err=10 rule=501 captcha=0/0
  b of four: Vcode err=11 rule=601 captcha=1/4
  c of four: Deny err=10 rule=104 captcha=0/0
  d of four: Allow err=0 rule=0 captcha=0/0
`
	if want := "curl\n" + lines + "socket\n" + lines; strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
