package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// readBody returns the body that --body names: a text, @file, or @- for standard input.
func readBody(value string, in io.Reader) ([]byte, error) {
	name, named := strings.CutPrefix(value, "@")
	if !named {
		return []byte(value), nil
	}
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the operator's own file
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, store.MaxPayload+1))
	if err == nil && len(body) > store.MaxPayload {
		err = fmt.Errorf("it has more than %s", ui.Bytes(store.MaxPayload))
	}
	return body, err
}
