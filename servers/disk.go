package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// Disk is a separate file system that a test can fill.
type Disk struct{ dir string }

// nameTmpfs is the right to mount a file system in REPRISE_TEST_REQUIRE.
const nameTmpfs = "tmpfs"

// NewDisk mounts a file system of some bytes, which takes root on Linux. It belongs to
// the user that runs PostgreSQL, if that is wanted.
func NewDisk(tb testing.TB, bytes int, postgres bool) *Disk {
	tb.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		must(tb, &missingError{nameTmpfs, "only root can mount a small disk, and on Linux"})
	}
	var as *account
	if postgres {
		p, err := findPostgres(tb.Context())
		must(tb, err)
		as = p.as
	}
	dir, err := scratch(tb, as)
	must(tb, err)
	_, err = run(tb.Context(), nil, "mount", "-t", "tmpfs", "-o", "size="+strconv.Itoa(bytes), "tmpfs", dir)
	if err != nil {
		err = &missingError{nameTmpfs, err.Error()}
	}
	must(tb, err)
	tb.Cleanup(func() {
		if _, err := run(context.WithoutCancel(tb.Context()), nil, "umount", "-l", dir); err != nil {
			tb.Error(err)
		}
	})
	must(tb, give(dir, as))
	return &Disk{dir}
}

// Dir returns where the disk is mounted.
func (d *Disk) Dir() string { return d.dir }

func (d *Disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// Fill takes all space that is left.
func (d *Disk) Fill(tb testing.TB) {
	tb.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(tb, err)
	defer f.Close()
	for piece := make([]byte, 4096); err == nil; {
		_, err = f.Write(piece)
	}
}

// Free gives the space back.
func (d *Disk) Free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(d.ballast()); !errors.Is(err, os.ErrNotExist) {
		must(tb, err)
	}
}
