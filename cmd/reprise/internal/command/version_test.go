package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestVersionNeedsNoStore(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"version":        "reprise (devel) go1.",
		"version --json": "{\n  \"version\": \"(devel)\",\n  \"go\": \"go1.",
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), strings.Fields(args), Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		if code != ExitFine || !strings.HasPrefix(out.String(), want) || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, output %q, errors %q; want %q", args, code, &out, &errs, want)
		}
	}
}
