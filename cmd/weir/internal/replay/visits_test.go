package replay_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// visit is one line of a generated log. Its zone is that of the server.
type visit struct {
	at           time.Time
	ip           string
	method, path string
	bytes        int
	written      time.Time // orders the log
}

// visits generates three days of a site's log, always the same: visitors,
// logins by brute force, floods, crawlers and downloads. The second day has 23
// hours in New York. A server writes a line when it has answered, so that
// instants go back by some seconds. One line in a hundred is bad.
func visits() string {
	random := rand.New(rand.NewPCG(1, 2))
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	var list []visit
	// session adds n requests of one address, in steps of up to pause.
	session := func(n int, pause time.Duration, method, path string, bytes int) {
		at := time.Date(2016, 3, 12, 12, 0, 0, 0, newYork).Add(time.Duration(random.IntN(3*24*60*60)) * time.Second)
		ip := fmt.Sprintf("10.0.0.%d", random.IntN(60))
		for range n {
			at = at.Add(time.Duration(random.Int64N(int64(pause))))
			list = append(list, visit{
				at: at.Truncate(time.Second), ip: ip, method: method,
				path: strings.Replace(path, "#", fmt.Sprint(random.IntN(400)), 1), bytes: random.IntN(bytes),
				written: at.Add(time.Duration(random.IntN(5000)) * time.Millisecond),
			})
		}
	}
	for range 150 {
		session(5+random.IntN(10), time.Minute, "GET", "/2016/03/post-#/?page=2", 200_000)
	}
	for range 10 {
		session(60, 4*time.Second, "POST", "/wp-login.php", 5_000)
		session(40, 4*time.Minute, "POST", "/wp-login.php?redirect_to=%2F", 5_000)
	}
	for range 4 {
		session(700, 300*time.Millisecond, "GET", "/?s=#", 20_000)
		session(400, 25*time.Second, "GET", "/tag/#/", 50_000)
		session(60, 20*time.Minute, "GET", "/files/#.iso", 40_000_000)
	}
	slices.SortStableFunc(list, func(a, b visit) int { return a.written.Compare(b.written) })

	var log strings.Builder
	for _, v := range list {
		if random.IntN(100) == 0 {
			log.WriteString("cannot be read\n")
		}
		size := cmp.Or(strings.TrimLeft(fmt.Sprint(v.bytes), "0"), "-") // servers write - for nothing
		fmt.Fprintf(&log, "%s - - [%s] \"%s %s HTTP/1.1\" 200 %s \"-\" \"Mozilla/5.0 (X11)\"\n",
			v.ip, v.at.Format("02/Jan/2006:15:04:05 -0700"), v.method, v.path, size)
	}
	return log.String()
}
