package suite

import (
	"strings"
	"testing"
)

func TestRecorderEndsTheBodyAsATestWould(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body            func(testing.TB)
		failed, skipped bool
		text            string
	}{
		"success": {func(tb testing.TB) { tb.Log("a", 1) }, false, false, "a 1"},
		"error":   {func(tb testing.TB) { tb.Error("a"); tb.Errorf("b%d", 2) }, true, false, "a\nb2"},
		"fail":    {func(tb testing.TB) { tb.Fail() }, true, false, ""},
		"fatal":   {func(tb testing.TB) { tb.Fatal("a"); tb.Log("not reached") }, true, false, "a"},
		"fatalf":  {func(tb testing.TB) { tb.Fatalf("a%d", 1); tb.Log("not reached") }, true, false, "a1"},
		"failnow": {func(tb testing.TB) { tb.FailNow(); tb.Log("not reached") }, true, false, ""},
		"skip":    {func(tb testing.TB) { tb.Skip("a"); tb.Log("not reached") }, false, true, "a"},
		"skipf":   {func(tb testing.TB) { tb.Skipf("a%d", 1); tb.Log("not reached") }, false, true, "a1"},
		"panic":   {func(testing.TB) { panic("at the disco") }, true, false, "panic: at the disco"},
	} {
		got := Record(t, row.body)
		text, _, _ := strings.Cut(got.Text(), "\ngoroutine") // the stack of a panic
		if got.Failed() != row.failed || got.Skipped() != row.skipped || text != row.text {
			t.Errorf("%s: failed %v, skipped %v, text %q", name, got.Failed(), got.Skipped(), text)
		}
	}
}
