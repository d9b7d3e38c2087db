package main

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // registers the driver
)

// Each engine gets its fairest settings: keys of 8 bytes in their order, one batch for
// an interval, one sync for a batch, and no sync for what the engine does beside.

func keyOf(key uint64) []byte { return binary.BigEndian.AppendUint64(nil, key) }

func appendState(b []byte, state []uint64) []byte {
	for _, w := range state {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func stateOf(b []byte, state []uint64) []uint64 {
	state = state[:0]
	for ; len(b) >= 8; b = b[8:] {
		state = append(state, binary.LittleEndian.Uint64(b))
	}
	return state
}

// entries are what was put since the last commit.
type entries struct {
	keys   []uint64
	states [][]byte
}

func (e *entries) put(key uint64, state []uint64) {
	e.keys = append(e.keys, key)
	e.states = append(e.states, appendState(nil, state))
}

func (e *entries) reset() { e.keys, e.states = e.keys[:0], e.states[:0] }

type pebbleSink struct {
	db    *pebble.DB
	batch *pebble.Batch
	key   [8]byte
	value []byte
}

func openPebble(dir string) (sink, error) {
	db, err := pebble.Open(dir, &pebble.Options{
		MemTableSize: 64 << 20, Cache: pebble.NewCache(64 << 20), Logger: quiet{},
		FormatMajorVersion: pebble.FormatNewest,
	})
	if err != nil {
		return nil, err
	}
	return &pebbleSink{db: db, batch: db.NewBatch()}, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, _ ...any) {
	panic(f)
}

func (p *pebbleSink) put(key uint64, state []uint64) {
	binary.BigEndian.PutUint64(p.key[:], key)
	var err error
	if len(state) == 0 {
		err = p.batch.Delete(p.key[:], nil)
	} else {
		p.value = appendState(p.value[:0], state)
		err = p.batch.Set(p.key[:], p.value, nil)
	}
	if err != nil {
		panic(err)
	}
}

func (p *pebbleSink) commit() error {
	err := p.batch.Commit(pebble.Sync)
	p.batch.Reset()
	return err
}

func (p *pebbleSink) load(put func(uint64, []uint64)) error {
	return halves(func(from, to []byte) error {
		it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			return err
		}
		var state []uint64
		for ok := it.First(); ok; ok = it.Next() {
			state = stateOf(it.Value(), state)
			put(binary.BigEndian.Uint64(it.Key()), state)
		}
		return it.Close()
	})
}

// halves calls read for the lower and the upper half of all keys. The last key is left
// out.
func halves(read func(from, to []byte) error) error {
	var group errgroup.Group
	group.Go(func() error { return read(keyOf(0), keyOf(1<<63)) })
	group.Go(func() error { return read(keyOf(1<<63), keyOf(1<<64-1)) })
	return group.Wait()
}

func (p *pebbleSink) close() error { return errors.Join(p.batch.Close(), p.db.Close()) }

type boltSink struct {
	entries
	db *bbolt.DB
}

var bucket = []byte("posts")

func openBolt(dir string) (sink, error) {
	db, err := bbolt.Open(filepath.Join(dir, "bolt"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return nil, err
	}
	return &boltSink{db: db}, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
}

func (b *boltSink) commit() error {
	defer b.reset()
	return b.db.Update(func(tx *bbolt.Tx) error {
		to := tx.Bucket(bucket)
		for i, key := range b.keys {
			if err := to.Put(keyOf(key), b.states[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *boltSink) load(put func(uint64, []uint64)) error {
	return halves(func(from, to []byte) error {
		return b.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucket).Cursor()
			var state []uint64
			for k, v := c.Seek(from); k != nil && string(k) < string(to); k, v = c.Next() {
				state = stateOf(v, state)
				put(binary.BigEndian.Uint64(k), state)
			}
			return nil
		})
	})
}

func (b *boltSink) close() error { return b.db.Close() }

type sqliteSink struct {
	entries
	db *sql.DB
}

func openSQLite(dir string) (sink, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-65536)")
	if err != nil {
		return nil, err
	}
	_, err = db.Exec("create table if not exists posts (key integer primary key, state blob) without rowid")
	return &sqliteSink{db: db}, err
}

func (s *sqliteSink) commit() error {
	defer s.reset()
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	set, err := tx.Prepare("insert into posts values (?, ?) on conflict do update set state = excluded.state")
	if err != nil {
		return err
	}
	for i, key := range s.keys {
		if _, err := set.Exec(int64(key), s.states[i]); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqliteSink) load(put func(uint64, []uint64)) error {
	var group errgroup.Group
	for _, where := range []string{"key < 0", "key >= 0"} {
		group.Go(func() error {
			rows, err := s.db.Query("select key, state from posts where " + where)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			var state []uint64
			var b sql.RawBytes
			for rows.Next() {
				var key int64
				if err := rows.Scan(&key, &b); err != nil {
					return err
				}
				state = stateOf(b, state)
				put(uint64(key), state)
			}
			return rows.Err()
		})
	}
	return group.Wait()
}

func (s *sqliteSink) close() error { return s.db.Close() }
