package safe

import "io"

// Writer passes all text through [Text] to another writer. It is not safe for concurrent
// use.
type Writer struct {
	w      io.Writer
	escape escaper
	buf    []byte
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, escape: escaper{lines: true}}
}

// Write writes the escaped form of p. A character that p ends in the middle of is written
// together with its end.
func (w *Writer) Write(p []byte) (int, error) {
	w.buf = w.escape.append(w.buf[:0], p, false)
	return w.flush(len(p))
}

// Flush writes the beginning of a character that has no end.
func (w *Writer) Flush() error {
	w.buf = w.escape.append(w.buf[:0], nil, true)
	_, err := w.flush(0)
	return err
}

func (w *Writer) flush(n int) (int, error) {
	if len(w.buf) == 0 {
		return n, nil
	}
	if _, err := w.w.Write(w.buf); err != nil {
		return 0, err
	}
	return n, nil
}
