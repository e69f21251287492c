package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows main.go, so its code compiles.
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
	_, shown, _ := strings.Cut(string(program), "\n") // without its package comment
	if !strings.Contains(string(readme), "```go\n"+shown+"```\n") {
		t.Error("README.md does not show examples/gin-memory/main.go as it is: copy the file, without its first line, into the README's program")
	}
}
