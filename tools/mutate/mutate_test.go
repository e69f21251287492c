package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const small = `package small

import "time"

const limit = 60 * time.Second

func late(d time.Duration) bool { return d > limit }

func sum(a, b int) (n int) {
	for i := range a {
		if i > 0 && b != 0 {
			n++
		}
	}
	return n -
		b
}

func unused(a int) int { return -a }
`

const smallTest = `package small

import (
	"testing"
	"time"
)

func TestLate(t *testing.T) {
	if late(time.Second) || !late(time.Hour) {
		t.Error("late")
	}
}

func TestSum(t *testing.T) {
	if sum(3, 0) != 0 || sum(3, 1) != 1 {
		t.Error("sum")
	}
}
`

// Every break of a small package ends as it has to, and is on alone.
func TestBreaksAreNoticedByTheTestsThatComeBy(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small\n\ngo 1.26\n", "small.go": small, "small_test.go": smallTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	all := regexp.MustCompile(".")
	r := &run{root: dir, pkg: ".", dir: t.TempDir(), workers: 1, files: all, lines: all, skip: regexp.MustCompile("^$")}
	if err := r.do(); err != nil {
		t.Fatal(err)
	}
	want := map[string]status{
		"7:44 > becomes <=":   killed,
		"7:44 > becomes >=":   lived, // nobody asks about the limit itself
		"11:8 > becomes <=":   killed,
		"11:8 > becomes >=":   killed,
		"11:12 && becomes ||": killed,
		"11:17 != becomes ==": killed,
		"12:5 ++ becomes --":  killed,
		"15:11 - becomes +":   killed,
		"19:33 - is left out": uncovered,
	}
	for _, s := range r.sites {
		_, place, _ := strings.Cut(strings.Join(strings.Fields(s.String())[:1], ""), ":")
		name := place + " " + s.What
		if want[name] == "" {
			t.Errorf("an unexpected break: %s", s)
		} else if s.Status != want[name] {
			t.Errorf("%s: %s, want %s", name, s.Status, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s was not tried", name)
	}
}
