package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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

func Half(a int) int { return a / 2 }

func Double(a int) int { return a * 2 }
`

// The first of these fails once, when it runs for the second time.
const otherTest = `package other

import (
	"os"
	"testing"

	"small"
)

func TestMoody(t *testing.T) {
	_ = small.Double(1)
	runs, _ := os.ReadFile("runs")
	_ = os.WriteFile("runs", append(runs, '.'), 0o600)
	if len(runs) == 1 {
		t.Error("moody")
	}
}

func TestHalf(t *testing.T) {
	if small.Half(4) != 2 {
		t.Error("half")
	}
}

func TestSlow(t *testing.T) {
	select {}
}
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
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module small\n\ngo 1.26\n", "small.go": small, "small_test.go": smallTest, "other/other_test.go": otherTest,
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	all := regexp.MustCompile(".")
	r := &run{root: dir, pkg: ".", with: []string{"./other"}, dir: t.TempDir(), workers: 1, longest: 5 * time.Second, files: all, lines: all, only: all, skip: regexp.MustCompile("^$")}
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
		"21:33 / becomes *":   killed, // by a test of the other package
		"23:35 * becomes /":   lived,  // a test failed, and not again
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
	if len(r.left) != 1 || r.left[0] != "TestSlow" {
		t.Errorf("left out %v, want what takes too long", r.left)
	}
}

func TestGroupsOfTests(t *testing.T) {
	var tests []test
	for i := range 12 {
		tests = append(tests, test{took: time.Duration(i) * time.Second})
	}
	for n, want := range map[int]string{0: "[]", 1: "[1]", 8: "[8]", 9: "[8 1]", 10: "[8 2]", 11: "[8 2 1]", 12: "[8 2 1 1]"} {
		sizes := []int{}
		for _, group := range groups(tests[:n]) {
			sizes = append(sizes, len(group))
		}
		if got := fmt.Sprint(sizes); got != want {
			t.Errorf("%d tests are in groups of %s, want %s", n, got, want)
		}
	}
}
