package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The guide for clients shows the function run, so its code compiles, and behaves as
// described.
func TestGuideShowsTheTwoEnds(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/guides/client.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(program), "func run(ctx context.Context, out io.Writer) error {\n")
	body, _, _ := strings.Cut(rest, "\n}\n")
	shown := strings.ReplaceAll("\n"+body, "\n\t", "\n")[1:]
	if !strings.Contains(string(guide), "```go\n"+shown+"\n```\n") {
		t.Errorf("docs/guides/client.md does not show the body of run in examples/bothends/main.go as it is; copy this into it:\n%s", shown)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(body, "return err // order")
	if got, want := out.String(), "order"+comment+"\n"; got != want {
		t.Errorf("printed %q, and the comment says %q", got, want)
	}
}
