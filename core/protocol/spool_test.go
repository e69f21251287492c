package protocol

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
)

// The temporary file has the same bytes as the blob store.
func TestSealedSpoolIsEncrypted(t *testing.T) {
	t.Parallel()
	s, err := newSpool(&Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 1 << 20}}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.encrypt()
	body := bytes.Repeat([]byte("private "), 20_000)
	if _, err := s.Write(body); err != nil {
		t.Fatal(err)
	}
	ref, err := s.ref()
	if err != nil || ref.Length() != int64(len(body)) || s.length() != ref.Length() {
		t.Fatalf("%+v, %v", ref, err)
	}
	file, err := io.ReadAll(s.section(t.Context()))
	if err != nil || int64(len(file)) != ref.Size || bytes.Contains(file, []byte("private")) {
		t.Errorf("the file has %d bytes, %v", len(file), err)
	}
	got, err := io.ReadAll(s.body())
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("the body has %d bytes, %v", len(got), err)
	}
}

// The files of a guard are within MaxSpool together, which is included.
func TestSpoolsHaveTheirRoom(t *testing.T) {
	t.Parallel()
	g := &Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 100}}}
	open := func() *spool {
		s, err := newSpool(g, 1000)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	first, second := open(), open()
	if _, err := first.Write(make([]byte, 60)); err != nil {
		t.Error(err)
	}
	if _, err := second.Write(make([]byte, 40)); err != nil {
		t.Errorf("the last byte: %v", err)
	}
	if _, err := second.Write(make([]byte, 1)); !errors.Is(err, errSpoolFull) || g.spooled.Load() != 60 {
		t.Errorf("a byte more: %v, and %d bytes are counted", err, g.spooled.Load())
	}
	first.Close()
	third := open()
	if _, err := third.Write(make([]byte, 100)); err != nil {
		t.Errorf("after that: %v", err)
	}
	if _, err := open().Write(make([]byte, 1)); !errors.Is(err, errSpoolFull) {
		t.Errorf("a byte more: %v", err)
	}
}

// A spool removes its own file and no other: where its file has no name any more, the
// name may be another process's.
func TestSpoolRemovesItsOwnFile(t *testing.T) {
	t.Parallel()
	g := &Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 100}}}
	s, err := newSpool(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	name := s.file.Name()
	switch {
	case s.name == "":
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the file of another is gone: %v", err)
		}
	case runtime.GOOS != "windows": // which does not remove a file that is open
		t.Errorf("the file still has the name %s", name)
	}
	if s, err = newSpool(g, 100); err != nil {
		t.Fatal(err)
	}
	s.name = name // as where open files cannot be removed
	s.Close()
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// A body that may be offloaded grows in few steps, up to the records' limit.
func TestBodiesThatMayBeOffloadedGrowInFewSteps(t *testing.T) {
	t.Parallel()
	grow := func(cfg Config, size int) (steps, room int) {
		g, body := &Guard{cfg: cfg}, []byte(nil)
		piece := make([]byte, 1000)
		for len(body) < size {
			before := cap(body)
			if body = append(g.room(body, len(piece)), piece...); cap(body) != before {
				steps++
			}
		}
		return steps, cap(body)
	}
	const limit = 1 << 20
	plain, _ := grow(Config{Limits: Limits{ResponseBody: limit}}, limit-1000)
	offloading := Config{Limits: Limits{ResponseBody: limit}, Offload: Offloading{Blobs: struct{ BlobStore }{}}}
	offloads, room := grow(offloading, limit-1000)
	if offloads > 8 || plain < 2*offloads || room > limit+limit/4 {
		t.Errorf("grew in %d steps to %d bytes; a body that is not offloaded grew in %d", offloads, room, plain)
	}
	if body := (&Guard{cfg: offloading}).room(nil, copyBuffer/8); body != nil {
		t.Errorf("a small body has room for %d bytes", cap(body))
	}
	if body := (&Guard{cfg: offloading}).room(nil, 2*limit); cap(body) < 2*limit {
		t.Errorf("a large piece has room for %d bytes", cap(body))
	}
}
