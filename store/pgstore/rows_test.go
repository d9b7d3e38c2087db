package pgstore_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// What was encoded is decoded, and no other bytes make it fail.
func FuzzState(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s window.State
		for rest := b; len(rest) >= 8; rest = rest[8:] {
			s = append(s, binary.LittleEndian.Uint64(rest))
		}
		k := pgstore.Key{1}
		if got, ok := pgstore.DecodeState(nil, &k, pgstore.EncodeState(nil, &k, s)); !ok || !slices.Equal(got, s) {
			t.Errorf("got %v, %v, want %v", got, ok, s)
		}
		if _, ok := pgstore.DecodeState(nil, &pgstore.Key{2}, pgstore.EncodeState(nil, &k, s)); ok && len(s) > 0 {
			t.Errorf("%v is the state of another key, too", s)
		}
		_, _ = pgstore.DecodeState(nil, &k, b)
	})
}

// A row that was damaged, edited or filled from another one is no counter. Its calls meet an outage,
// and those of other keys in the transaction do not.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	take := func(name string, l window.Limit, key string) store.Call {
		return store.Call{Verb: store.Take, Ops: []store.Op{{
			Space: store.NewSpace("", name, name, 1000), Limit: window.MustCompile(l), Key: []byte(key), N: 1,
		}}}
	}
	cells := window.Limit{Quota: 50, Window: window.Cells(time.Hour, 6)}
	sliding := window.Limit{Quota: 50, Window: window.Sliding(time.Hour)}
	calls := []store.Call{take("cells", cells, "k"), take("sliding", sliding, "k"), take("cells", cells, "other")}
	do := func() {
		t.Helper()
		if err := s.Do(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
	}
	do()
	for _, damaged := range []string{
		`substr(state, 1, 7)`, `substr(state, 1, 1)`, `state || '\x02'`, `set_byte(state, 6, 255 - get_byte(state, 6))`,
		`(SELECT state FROM weir_counters WHERE name = 'sliding:k')`,
	} {
		n.Must(`UPDATE weir_counters SET state = ` + damaged + ` WHERE name = 'cells:k'`)
		do()
		if out, ok := errors.AsType[*store.OutageError](calls[0].Err); !ok || out.Reason != remote.Foreign {
			t.Errorf("%s: got %v, want an outage of a row that is no counter", damaged, calls[0].Err)
		}
		if err := errors.Join(calls[1].Err, calls[2].Err); err != nil {
			t.Errorf("%s: other keys: %v", damaged, err)
		}
		if err := s.Forget(t.Context(), &calls[0].Ops[0]); err != nil {
			t.Fatal(err)
		}
		if do(); calls[0].Err != nil {
			t.Errorf("forgotten: %v", calls[0].Err)
		}
	}
}

// Keys that the encoding of a database cannot express are counted and listed there, too.
func TestOtherEncodings(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	for i, encoding := range []string{"EUC_JP", "LATIN1", "SQL_ASCII", "UTF8"} {
		database := fmt.Sprint("d", i)
		n.Must(`CREATE DATABASE ` + database + ` ENCODING '` + encoding + `' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`)
		for _, client := range []string{"", "&client_encoding=UTF8"} {
			s, err := pgstore.Open(t.Context(), fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&timeout=20s%s", pgtest.User, n.Addr(), database, client))
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"plain", "ü", "漢字", "😀", "\x85", "\x00\\"} {
				op := store.Op{
					Space: store.NewSpace("", "x"+client, "x", 1000), Limit: window.MustCompile(window.Limit{Quota: 5, Window: window.Ever()}),
					Key: []byte(key), N: 1,
				}
				if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
					t.Errorf("%s%s, key %q: %v", encoding, client, key, err)
				}
			}
			var keys []string
			op := store.Op{Space: store.NewSpace("", "x"+client, "x", 1000), Limit: window.MustCompile(window.Limit{Quota: 5, Window: window.Ever()})}
			if _, err := s.Keys(t.Context(), &op, nil, func(key []byte, _ window.State, _ window.Instant) {
				keys = append(keys, string(key))
			}); err != nil {
				t.Fatal(err)
			}
			slices.Sort(keys)
			want := []string{"", "plain", "ü", "漢字", "😀"} // and two that are no text, or of the client before
			if keys = slices.Compact(keys); !slices.Equal(keys, want) {
				t.Errorf("%s%s: got keys %q, want %q", encoding, client, keys, want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
