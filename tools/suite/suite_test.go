package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const tests = `package p

import "testing"

func TestPasses(t *testing.T) { t.Run("part", func(*testing.T) {}) }

func TestRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make nightly: long histories")
	}
}

func TestWithoutServer(t *testing.T) { t.Log("first"); t.Skip("no valkey") }
`

// body returns the file of a test.
func body(lines string) string {
	return "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _ = os.Stat, time.Sleep\n\nfunc TestIt(t *testing.T) {\n" + lines + "\n}\n"
}

// once fails in its first run, and leaves a file that lets the second one pass.
const once = `	if _, err := os.Stat("ran"); err == nil {
		return
	}
	_ = os.WriteFile("ran", nil, 0o600)
	`

// suite runs the tests of a module, and returns what it printed, its lines of flaky
// packages among that.
func suite(t *testing.T, files map[string]string, flags ...string) (r *report, printed string) {
	t.Helper()
	files["go.mod"] = "module p\n\ngo 1.26.0\n"
	t.Chdir(tree.Small(t, files)) // the program runs in the folder of the workspace
	var out bytes.Buffer
	r = newReport(&out)
	if err := r.run(t.Context(), append(flags, "./...")); err != nil {
		t.Fatalf("%v; printed\n%s", err, out.String())
	}
	return r, out.String() + r.summary("make it", "redis,postgres", 3*time.Second)
}

func TestLastLinesSayWhatRanAndWhatIsLeft(t *testing.T) {
	for name, row := range map[string]struct{ flag, more, want string }{
		"short": {"-short", "", "skipped 1: no valkey\nmake it: 2 passed, 0 failed, 2 skipped, of 1 packages in 3s on redis, postgres; left to make nightly: 1 long histories\n"},
		"full":  {"-short=false", "", "skipped 1: no valkey\nmake it: 3 passed, 0 failed, 1 skipped, of 1 packages in 3s on redis, postgres; left to make nightly: nothing\n"},
		"failure": {
			"-short=false", "func TestFails(t *testing.T) { t.Error(\"always\") }\n",
			"skipped 1: no valkey\nfailed: p TestFails\nmake it: 3 passed, 1 failed, 1 skipped, of 1 packages in 3s on redis, postgres; left to make nightly: nothing\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, out := suite(t, map[string]string{"p_test.go": tests + row.more}, row.flag)
			if !strings.HasSuffix(out, row.want) || r.ok() != (row.more == "") {
				t.Errorf("ok=%t, printed\n%s\nwant the end\n%s", r.ok(), out, row.want)
			}
			if row.more != "" && !strings.Contains(out, "always") || row.more == "" && !strings.HasPrefix(out, "ok  \tp\t") {
				t.Errorf("printed\n%s", out)
			}
		})
	}
}

// A package counts once, in its second run, and only that one prints the lines of go test
// that others look for. A seed of a test that passes keeps no package from that run.
func TestFailedPackageIsRunOnceMoreAlone(t *testing.T) {
	const slow = "\ttime.Sleep(2 * time.Second)\n\t_ = os.WriteFile(\"../ended\", nil, 0o600)"
	r, out := suite(t, map[string]string{
		"p_test.go":        tests,
		"flaky/p_test.go":  body(once+"t.Run(\"part\", func(t *testing.T) { t.Error(\"late\") })\n\tt.Log(\"after\")") + "\nfunc TestSeeded(t *testing.T) { t.Log(\"seed 7\") }\n\nfunc TestSecond(t *testing.T) {\n\tif _, err := os.Stat(\"../ended\"); err != nil {\n\t\tt.Error(\"beside others\")\n\t}\n}\n",
		"others/p_test.go": body(slow),
	}, "-short", "-p=3")
	if !r.ok() || !strings.Contains(out, "\nflaky: p/flaky (TestIt/part, TestIt, TestSecond)\nmake it: 6 passed, 0 failed, 2 skipped, of 3 packages in") {
		t.Errorf("ok=%t, printed\n%s", r.ok(), out)
	}
	if !strings.Contains(out, "late") || strings.Contains(out, "\nFAIL") || strings.Contains(out, "\n--- FAIL") || strings.Count(out, "ok  \tp/flaky\t") != 1 {
		t.Errorf("printed\n%s", out)
	}
}

// Each would pass in a second run.
func TestWhatIsNotTheMachinesFaultIsNotRunAgain(t *testing.T) {
	for name, row := range map[string]struct{ file, flag string }{
		"seed":         {body(once + `t.Error("seed 7: no order explains it")`), ""},
		"seed of env":  {body(once + "t.Log(\"REPRISE_SEED=15\")\n\tt.Error(\"broken\")"), ""},
		"seed of part": {body(once + `t.Run("seed=3", func(t *testing.T) { t.Error("broken") })`), ""},
		"fuzz": {strings.Replace(body(once+`f.Add(1); f.Fuzz(func(t *testing.T, n int) { t.Error(n) })`),
			"TestIt(t *testing.T)", "FuzzIt(f *testing.F)", 1), ""},
		"panic":         {body(once + `panic("broken")`), ""},
		"panic outside": {body(once + "go func() { panic(\"broken\") }()\n\ttime.Sleep(time.Minute)"), ""},
		"fatal error":   {body(once + "m := map[int]int{}\n\tgo func() { for { m[1]++ } }()\n\tfor { m[1]++ }"), ""},
		"hang":          {body(once + `time.Sleep(time.Hour)`), "-timeout=1s"},
		"data race":     {body(once + "n, done := 0, make(chan int)\n\tgo func() { n++; close(done) }()\n\tn++\n\t<-done"), "-race"},
		"vet":           {body(`t.Errorf("%d", "broken")`), ""},
		"compile error": {body(`missing()`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, out := suite(t, map[string]string{"p_test.go": row.file}, strings.Fields(row.flag)...)
			if r.ok() || len(r.flaky)+len(r.again) > 0 || !strings.Contains("\n"+out, "\nFAIL\tp") {
				t.Errorf("ok=%t, printed\n%s", r.ok(), out)
			}
		})
	}
}

// Also one whose tests never ran: its servers did not start. Three are too many.
func TestFlakyPackagesAreRecordedAndBounded(t *testing.T) {
	files := map[string]string{
		"a/p_test.go": body(once + `t.Error("late")`),
		"b/p_test.go": strings.Replace(body("")+"\nfunc TestMain(*testing.M) {\n"+once+"os.Exit(1)\n}\n", "return", "os.Exit(0)", 1),
	}
	list := filepath.Join(t.TempDir(), "flaky")
	want := "p/a (TestIt)\np/b (none of its tests)\n"
	for n, ok := range []bool{true, false} {
		t.Run(strconv.Itoa(2+n), func(t *testing.T) {
			r, out := suite(t, files)
			if err := r.record(list); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(list)
			if err != nil || string(got) != want || r.ok() != ok || ok == strings.Contains(out, "\nfailed: at most 2 packages may be flaky\nmake it: 2 passed, 0 failed") {
				t.Errorf("recorded %q, %v, ok=%t; printed\n%s", got, err, r.ok(), out)
			}
		})
		files["c/p_test.go"] = files["a/p_test.go"]
		want += "p/a (TestIt)\np/b (none of its tests)\np/c (TestIt)\n"
	}
}

func TestGoCommandThatFailsIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := newReport(new(bytes.Buffer)).run(context.WithoutCancel(t.Context()), []string{"-nosuchflag", "./..."}); err == nil {
		t.Error("no error")
	}
}
