package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows the body of main, so its code compiles and runs.
func TestReadmeShowsThisProgram(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(program), "\nfunc main() {\n")
	shown := strings.ReplaceAll("\n"+strings.TrimSuffix(body, "}\n"), "\n\t", "\n")
	if body == "" || !strings.Contains(string(readme), "```go"+shown+"```\n") {
		t.Errorf("README.md does not show the body of main in examples/gin-memory/main.go as it is; copy this into it:%s", shown)
	}
}
