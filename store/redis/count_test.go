package repriseredis

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// A count adds the steps of a scan and the records that it had to inspect, each once, but
// is none of a server that was replaced meanwhile, or that gives another answer.
func TestACountAddsTheStepsOfAScan(t *testing.T) {
	t.Parallel()
	const label = "Cpay"
	step := func(next, counts, keys string) string { return "*3\r\n" + bulk(next) + counts + keys }
	whole := []string{
		step("7", "*4\r\n"+bulk(label)+":2\r\n"+bulk("C"+store.ProbeLabel)+":5\r\n", "*2\r\n"+listedKey(1)+listedKey(2)),
		step("0", "*4\r\n"+bulk(label)+":1\r\n"+bulk("Epay")+":1\r\n", "*2\r\n"+listedKey(1)+bulk(servicePrefix+"another")),
	}
	for name, c := range map[string]struct {
		steps [2]string
		later string // how the server is called after the scan
		want  error
	}{
		"whole":           {[2]string(whole), "a", nil},
		"replaced":        {[2]string(whole), "b", store.ErrUnavailable},
		"no keys":         {[2]string{"*2\r\n" + bulk("0") + "*0\r\n"}, "a", store.ErrUnknown},
		"odd":             {[2]string{step("0", "*1\r\n"+bulk(label), "*0\r\n")}, "a", store.ErrUnknown},
		"no number":       {[2]string{step("0", "*2\r\n"+bulk(label)+bulk("1"), "*0\r\n")}, "a", store.ErrUnknown},
		"no state":        {[2]string{step("0", "*2\r\n"+bulk("")+":1\r\n", "*0\r\n")}, "a", store.ErrUnknown},
		"no key":          {[2]string{step("0", "*0\r\n", "*1\r\n:1\r\n")}, "a", store.ErrUnknown},
		"without a right": {[2]string{"-NOPERM this user has no permissions\r\n"}, "a", store.ErrMisconfigured},
	} {
		scanned := 0
		f := newFake(t, func(_, _ int, command []string) string {
			switch {
			case command[0] == "info" && scanned < 2:
				return bulk("run_id:a\n")
			case command[0] == "info":
				return bulk("run_id:" + c.later + "\n")
			case command[1] == record.CountScript.Digest:
				return "-NOSCRIPT No matching script.\r\n"
			case command[1] == record.CountScript.Source:
				scanned++
				return c.steps[scanned-1]
			case strings.HasSuffix(command[3], "\x02}"):
				return strings.Replace(inspected, "R\x03", "R\x02", 1)
			default:
				return inspected
			}
		})
		open := ""
		got, err := newStore(t, f, Config{}).Count(t.Context(), func(r *store.Record) { open += r.ID.Short() + r.State.String() })
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		want := map[store.LabelState]int{
			{Label: "pay", State: store.StateCompleted}: 3, {Label: "pay", State: store.StateExpired}: 1, {Label: "", State: store.StateCompleted}: 1,
		}
		if err == nil && (!maps.Equal(got, want) || open != (store.ID{}).Short()+"lapsed") {
			t.Errorf("%s: %v, and shown %q", name, got, open)
		}
	}
}
