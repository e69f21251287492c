package edges_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

var updateCodes = flag.Bool("update", false, "write client/codes.go")

// The client must not import core, so it has a copy of the table of problems.
func TestClientHasEveryCode(t *testing.T) {
	t.Parallel()
	var constants, retryable bytes.Buffer
	for _, code := range protocol.Codes() {
		var name strings.Builder
		for word := range strings.SplitSeq(string(code), "-") {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		fmt.Fprintf(&constants, "Code%s Code = %q\n", &name, code)
		fmt.Fprintf(&retryable, "Code%s: %t,\n", &name, code.Problem().Retryable)
	}
	want, err := format.Source(fmt.Appendf(nil, `// Code generated from core/protocol by TestClientHasEveryCode. DO NOT EDIT.

package repriseclient

// The codes.
const (
%s)

// retryable has every code, and whether the same request with the same key may succeed
// later.
var retryable = map[Code]bool{
%s}
`, &constants, &retryable))
	labtest.Must(t, err)
	path := filepath.Join("..", "..", "client", "codes.go")
	if *updateCodes {
		labtest.Must(t, os.WriteFile(path, want, 0o600))
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("client/codes.go is not current (%v): go test ./lab/edges -run %s -update", err, t.Name())
	}
}
