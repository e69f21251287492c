package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// The bytes of the blob come back from any offset, in pieces of any size and at once; the
// file has none of them.
func TestSpoolFileIsUnreadable(t *testing.T) {
	t.Parallel()
	s := must((&Files{Dir: t.TempDir(), Max: 1 << 20}).New(1 << 20))
	defer s.Close()
	body := bytes.Repeat([]byte("private "), 10_001)
	for rest, n := body, 1; len(rest) > 0; n = n*3 + 1 {
		n = min(n, len(rest))
		must(s.Write(rest[:n]))
		rest = rest[n:]
	}
	must(s.Ref())
	file := make([]byte, len(body)+1)
	if n, err := s.file.ReadAt(file, 0); n != len(body) || !errors.Is(err, io.EOF) || bytes.Contains(file, []byte("priv")) {
		t.Errorf("the file has %d bytes, %v, and %.20q", n, err, file)
	}
	var readers sync.WaitGroup
	for off := range 40 {
		readers.Go(func() {
			got := make([]byte, 33*(off+1))
			at := int64(off * 2003)
			n, err := s.Section(t.Context()).ReadAt(got, at)
			if want := body[at:]; !bytes.Equal(got[:n], want[:min(len(got), len(want))]) || n < len(got) && !errors.Is(err, io.EOF) {
				t.Errorf("from %d: %d bytes, %v", at, n, err)
			}
		})
	}
	readers.Wait()
}

// A blob that is sealed is encrypted once more than its file.
func TestSealedSpoolIsEncrypted(t *testing.T) {
	t.Parallel()
	s := must((&Files{Dir: t.TempDir(), Max: 1 << 20}).New(1 << 20))
	defer s.Close()
	s.Encrypt()
	body := bytes.Repeat([]byte("private "), 20_000)
	must(s.Write(body))
	ref, err := s.Ref()
	if err != nil || ref.Length() != int64(len(body)) || s.Length() != ref.Length() {
		t.Fatalf("%+v, %v", ref, err)
	}
	file, err := io.ReadAll(s.Section(t.Context()))
	if err != nil || int64(len(file)) != ref.Size || bytes.Contains(file, []byte("private")) {
		t.Errorf("the blob has %d bytes, %v", len(file), err)
	}
	got, err := io.ReadAll(s.Body())
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("the body has %d bytes, %v", len(got), err)
	}
}

// The files of a guard are within MaxSpool together, which is included.
func TestSpoolsHaveTheirRoom(t *testing.T) {
	t.Parallel()
	files := &Files{Dir: t.TempDir(), Max: 100}
	open := func() *Spool {
		s := must(files.New(1000))
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
	if _, err := second.Write(make([]byte, 1)); !errors.Is(err, ErrFull) || files.used.Load() != 60 {
		t.Errorf("a byte more: %v, and %d bytes are counted", err, files.used.Load())
	}
	first.Close()
	third := open()
	if _, err := third.Write(make([]byte, 100)); err != nil {
		t.Errorf("after that: %v", err)
	}
	if _, err := open().Write(make([]byte, 1)); !errors.Is(err, ErrFull) {
		t.Errorf("a byte more: %v", err)
	}
	sent := third.Body()
	if len(files.sent) != 1 {
		t.Errorf("%d bodies are said to be sent, want 1", len(files.sent))
	}
	_ = sent.Close()
	if len(files.sent) != 0 || files.used.Load() != 0 {
		t.Errorf("a body that was closed counts: %d bytes", files.used.Load())
	}
}

// A body that finds no room takes none, for however short a time: others that have it
// were refused meanwhile.
func TestBodyWithoutRoomRefusesNoOther(t *testing.T) {
	t.Parallel()
	files := &Files{Max: 100}
	var done atomic.Bool
	var greedy sync.WaitGroup
	for range 4 {
		greedy.Go(func() {
			for !done.Load() {
				if files.take(101) {
					t.Error("more than there is")
				}
			}
		})
	}
	for range 200_000 {
		if !files.take(100) {
			t.Error("refused, although all of it is free")
			break
		}
		files.used.Add(-100)
	}
	done.Store(true)
	greedy.Wait()
}

// A spool removes its own file and no other: where its file has no name any more, the
// name may be another process's.
func TestSpoolRemovesItsOwnFile(t *testing.T) {
	t.Parallel()
	files := &Files{Dir: t.TempDir(), Max: 100}
	s := must(files.New(100))
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
	s = must(files.New(100))
	s.name = name // as where open files cannot be removed
	s.Close()
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
