package spool

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"os"
	"sync"
)

// cover encrypts a file with AES-256 in counter mode, under a random key that is used for
// nothing else and is nowhere else: a body that must not be stored, or is stored sealed,
// is on no disk in the clear. The file has no integrity of its own; only this process
// can reach it.
//
// Reading is safe for concurrent use after flush.
type cover struct {
	file   *os.File
	block  cipher.Block
	stream cipher.Stream // of the bytes that come next
	buffer []byte        // clear bytes

	mu   sync.Mutex    // guards the fields below
	read cipher.Stream // of the bytes after the last ones that were read
	next int64         // their offset
}

const bufferSize = 16 << 10

func newCover(file *os.File) *cover {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the program instead
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // never: it is a length of AES
	}
	c := &cover{file: file, block: block, buffer: make([]byte, 0, bufferSize)}
	c.stream = c.from(0)
	return c
}

// from returns the key stream from an offset on.
func (c *cover) from(off int64) cipher.Stream {
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(off/aes.BlockSize)) //nolint:gosec // not negative
	stream := cipher.NewCTR(c.block, counter[:])
	before := skipped[:off%aes.BlockSize]
	stream.XORKeyStream(before, before)
	return stream
}

// write appends p to the file.
func (c *cover) write(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), cap(c.buffer)-len(c.buffer))
		c.buffer, p = append(c.buffer, p[:n]...), p[n:]
		if len(c.buffer) < cap(c.buffer) {
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the rest. The file is of no use after an error.
func (c *cover) flush() error {
	c.stream.XORKeyStream(c.buffer, c.buffer)
	_, err := c.file.Write(c.buffer)
	c.buffer = c.buffer[:0]
	return err
}

// ReadAt implements [io.ReaderAt]. Reading on where the last call ended makes no garbage.
func (c *cover) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.file.ReadAt(p, off)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil || c.next != off {
		c.read = c.from(off)
	}
	c.read.XORKeyStream(p[:n], p[:n])
	c.next = off + int64(n)
	return n, err
}
