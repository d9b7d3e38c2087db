package kept

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
)

// Memory is a [Store] in this process, with a side store also on disk. Make one with
// [NewMemory]. It is safe for concurrent use.
type Memory struct {
	side hook.SideStore // or nil
	end  func()

	mu        sync.Mutex
	loaded    bool                 // guarded by mu
	registers map[string]*register // guarded by mu
}

// register is what Memory keeps under a name.
type register struct {
	version, forgotten int64
	saved              int64 // the version that is certainly on disk
	parts              [parts]map[string]entry
	changed            [parts]bool // since it was last written
	order              []string    // the fields in the order of their changes; nil: not known
}

type entry struct {
	value   string
	version int64
}

// parts is how many blobs a register is written as: a change writes one of them.
const parts = 256

// blobPrefix begins the names of blobs.
const blobPrefix = "kept/"

// NewMemory returns a store that writes to side, if that is not nil. Until side is loaded, it answers with
// an outage. Close it before side is closed.
func NewMemory(side hook.SideStore) *Memory {
	m := &Memory{side: side, loaded: side == nil, registers: map[string]*register{}}
	if side != nil {
		m.end = side.Follow(m.save)
	}
	return m
}

// Close writes what was changed.
func (m *Memory) Close() {
	if m.end != nil {
		m.end()
	}
}

var errLoading = &store.OutageError{
	Reason: "loading", Err: errors.New("the data directory is being loaded"), Uncounted: true, RetryAfter: time.Second,
}

// load returns the register called name. It needs mu.
func (m *Memory) load(name string) (*register, error) {
	if !m.loaded {
		select {
		case <-m.side.Loaded():
		default:
			return nil, errLoading
		}
		m.loaded = true
		m.side.Claim(blobPrefix, m.restore)
		for _, r := range m.registers {
			r.forgotten, r.saved = r.version, r.version
		}
	}
	r := m.registers[name]
	if r == nil {
		r = &register{}
		m.registers[name] = r
	}
	return r, nil
}

// Keep implements [Store].
func (m *Memory) Keep(ctx context.Context, name string, version int64, fields, values []string) (int64, error) {
	m.mu.Lock()
	r, err := m.load(name)
	if err != nil || r.version != version {
		defer m.mu.Unlock()
		return 0, err
	}
	for i := range fields {
		r.set(fields[i], values[i])
	}
	now := r.version
	m.mu.Unlock()
	if err := m.flush(ctx, r); err != nil {
		return 0, err
	}
	return now, nil
}

// flush returns when what was changed in r is on disk.
func (m *Memory) flush(ctx context.Context, r *register) error {
	m.mu.Lock()
	version, saved := r.version, r.saved
	m.mu.Unlock()
	if m.side == nil || saved == version {
		return nil
	}
	if err := m.side.Flush(ctx); err != nil {
		return &store.OutageError{Reason: "unknown", Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.saved = max(r.saved, version)
	return nil
}

// Durable returns a store with the registers of m whose Kept returns only what is on disk, and an error while the
// disk lacks a change. So a change that ended with an error takes effect when it is written.
func (m *Memory) Durable() Store { return durable{m} }

type durable struct{ *Memory }

// Kept implements [Store].
func (m durable) Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	m.mu.Lock()
	r, err := m.load(name)
	m.mu.Unlock()
	if err == nil {
		err = m.flush(ctx, r)
	}
	if err != nil {
		return nil, nil, next, false, err
	}
	return m.Memory.Kept(ctx, name, since, most)
}

func (r *register) set(field, value string) {
	p := partOf(field)
	r.version = max(r.version+1, time.Now().UnixMicro())
	if r.forgotten == 0 {
		r.forgotten = r.version - 1
	}
	r.changed[p], r.order = true, nil
	if value == "" {
		delete(r.parts[p], field)
		r.forgotten = r.version // removals are not remembered
		return
	}
	if r.parts[p] == nil {
		r.parts[p] = map[string]entry{}
	}
	r.parts[p][field] = entry{value, r.version}
}

// Kept implements [Store].
func (m *Memory) Kept(_ context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.load(name)
	if err != nil {
		return nil, nil, next, false, err
	}
	if again = since[1] < r.forgotten || since[0] > r.version; again {
		since = [2]int64{0, r.version}
	}
	if next = [2]int64{r.version, r.version}; since == next {
		return nil, nil, next, again, nil
	}
	r.sort()
	from, _ := slices.BinarySearchFunc(r.order, since[0]+1, func(field string, v int64) int { return cmp.Compare(r.at(field).version, v) })
	for _, field := range r.order[from:] {
		e := r.at(field)
		fields, values = append(fields, field), append(values, e.value)
		if len(fields) == most {
			next = [2]int64{e.version, since[1]}
			break
		}
	}
	if next[0] == r.version {
		r.order = nil // it is needed while pages are read
	}
	return fields, values, next, again, nil
}

func (r *register) at(field string) entry { return r.parts[partOf(field)][field] }

// sort makes order known.
func (r *register) sort() {
	if r.order != nil {
		return
	}
	r.order = []string{}
	for _, part := range r.parts {
		for field := range part {
			r.order = append(r.order, field)
		}
	}
	slices.SortFunc(r.order, func(a, b string) int { return cmp.Compare(r.at(a).version, r.at(b).version) })
}

// partOf returns the part that has a field.
func partOf(field string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(field))
	return int(h.Sum32() % parts)
}

// save puts the parts that have changed into the side store.
func (m *Memory) save(put func(name string, data []byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, r := range m.registers {
		if strings.HasPrefix(name, Outboxes) && r.version < time.Now().Add(-outboxAge).UnixMicro() {
			for _, part := range r.parts {
				for field := range part {
					r.set(field, "")
				}
			}
		}
		for p, changed := range r.changed {
			if !changed {
				continue
			}
			r.changed[p] = false
			var data []byte
			for field, e := range r.parts[p] {
				data = binary.AppendUvarint(appendText(appendText(data, field), e.value), uint64(e.version)) //nolint:gosec // positive
			}
			put(blobPrefix+name+"/"+strconv.Itoa(p), data)
		}
	}
}

// restore reads a part that an earlier process has written.
func (m *Memory) restore(blob string, data []byte) {
	name := strings.TrimPrefix(blob, blobPrefix)
	name = name[:max(0, strings.LastIndexByte(name, '/'))]
	r := m.registers[name]
	if r == nil {
		r = &register{}
		m.registers[name] = r
	}
	for len(data) > 0 {
		field, rest, ok1 := store.CutKey(data)
		value, rest, ok2 := store.CutKey(rest)
		version, size := binary.Uvarint(rest)
		if !ok1 || !ok2 || size <= 0 {
			return // damaged, which the checksum of the file excludes
		}
		p, e := partOf(string(field)), entry{string(value), int64(version)} //nolint:gosec // save wrote an int64
		if r.parts[p] == nil {
			r.parts[p] = map[string]entry{}
		}
		r.parts[p][string(field)], r.version, data = e, max(r.version, e.version), rest[size:]
	}
}

// appendText appends text after its length.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
