package console_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// The release of axe-core that the pages are checked with, and the digest that the
// registry gives for it.
const (
	axeRelease   = "axe-core@4.14.1"
	axeIntegrity = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeSource returns axe-core from the npm registry. Without npm or the registry the test
// is skipped, unless REPRISE_TEST_REQUIRE has "npm".
func axeSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", dir, axeRelease)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		if servers.Required(t, "npm") {
			t.Fatalf("npm pack: %v: %s", err, out)
		}
		t.Skipf("axe-core is unavailable: %v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("npm pack left %q, %v", files, err)
	}
	file, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != axeIntegrity {
		t.Fatalf("%s has the digest %s", axeRelease, got)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			t.Fatal("the package has no axe.min.js")
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name == "package/axe.min.js" {
			source, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return string(source)
		}
	}
}
