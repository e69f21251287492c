package repriseredis

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// listed is a server with five records, a key of another program and a record that is
// gone, which a scan finds in two steps.
func listed(t *testing.T, override func(name string, command []string) string) *Store {
	t.Helper()
	f := newFake(t, func(_, _ int, command []string) string {
		name := strings.ToLower(command[0])
		if answer := override(name, command); answer != "" {
			return answer
		}
		switch name {
		case "info":
			return bulk("run_id:a\n")
		case "scan":
			if command[1] == "0" {
				return "*2\r\n" + bulk("7") + "*4\r\n" + listedKey(3) + listedKey(1) + listedKey(2) + bulk(servicePrefix+"another")
			}
			return "*2\r\n" + bulk("0") + "*3\r\n" + listedKey(9) + listedKey(5) + listedKey(4)
		default:
			if strings.HasSuffix(command[3], "\x09}") {
				return bulk("N")
			}
			return inspected
		}
	})
	return newStore(t, f, Config{})
}

// listedKey is how a scan shows the key of a record whose ID ends with n.
func listedKey(n byte) string {
	return bulk((&Store{config: Config{Prefix: servicePrefix}}).key(store.ID{31: n}))
}

// walk lists pages until the end or an error, and returns the last bytes of the IDs by
// page.
func walk(t *testing.T, s *Store, limit int) (pages []string, err error) {
	t.Helper()
	q := store.Query{Limit: limit}
	for range 20 {
		page, err := s.List(t.Context(), q)
		if err != nil {
			return pages, err
		}
		pages = append(pages, last(page.Records))
		if q.After = page.Next; q.After == "" {
			return pages, nil
		}
	}
	t.Fatal("a listing without an end")
	return nil, nil
}

// last returns the last bytes of IDs as digits.
func last(records []store.Record) string {
	digits := make([]byte, len(records))
	for i := range records {
		digits[i] = '0' + records[i].ID[31]
	}
	return string(digits)
}

func TestAListingShowsEachRecordOnce(t *testing.T) {
	t.Parallel()
	s := listed(t, func(string, []string) string { return "" })
	for limit, want := range map[int]string{1: "1 2 3 4 5", 2: "12 34 5", 3: "312 54", 4: "3124 5", 5: "31254", 100: "31254"} {
		pages, err := walk(t, s, limit)
		if got := strings.TrimSpace(strings.Join(pages, " ")); err != nil || got != want {
			t.Errorf("by %d: %q, %v; want %q", limit, got, err, want)
		}
	}
}

// A page looks at about ten thousand keys of a server, also where it finds nothing.
func TestAPageOfAListingIsBounded(t *testing.T) {
	t.Parallel()
	steps := 0
	s := listed(t, func(name string, _ []string) string {
		if name != "scan" {
			return ""
		}
		steps++
		return "*2\r\n" + bulk("7") + "*1\r\n" + bulk("another")
	})
	page, err := s.List(t.Context(), store.Query{Limit: 1})
	if err != nil || page.Next == "" || steps != 20 {
		t.Errorf("%d steps, and then %q, %v; want 20 of 500 keys, and another page", steps, page.Next, err)
	}
}

// The positions of a scan are meaningless to another process, whose keys are scanned
// again.
func TestAListingStartsAgainWithAServerThatWasReplaced(t *testing.T) {
	t.Parallel()
	asked := 0
	s := listed(t, func(name string, _ []string) string {
		if name != "info" {
			return ""
		}
		if asked++; asked < 2 {
			return bulk("run_id:a\n")
		}
		return bulk("run_id:new\n")
	})
	pages, err := walk(t, s, 100)
	if err != nil || strings.Join(pages, " ") != "31254 31254" {
		t.Errorf("%q, %v; want all records again", pages, err)
	}

	asked = -1 // between two pages
	if pages, err = walk(t, s, 3); err != nil || strings.Join(pages, " ") != "312 312 54" {
		t.Errorf("%q, %v; want all records again", pages, err)
	}
}

// A step that ends elsewhere when it is repeated is another step, with other keys.
func TestAStepThatEndsElsewhereIsShownAgain(t *testing.T) {
	t.Parallel()
	steps := 0
	s := listed(t, func(name string, command []string) string {
		if name != "scan" || command[1] != "0" {
			return ""
		}
		if steps++; steps == 1 {
			return ""
		}
		return "*2\r\n" + bulk("8") + "*3\r\n" + listedKey(3) + listedKey(1) + listedKey(2)
	})
	if pages, err := walk(t, s, 2); err != nil || strings.Join(pages, " ") != "12 12 34 5" {
		t.Errorf("%q, %v; want the first step again", pages, err)
	}
}

func TestListingNamesItsFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, answer string
		want            error
	}{
		{"scan", "-NOPERM no\r\n", store.ErrMisconfigured},
		{"evalsha", "-NOPERM no\r\n", store.ErrMisconfigured},
		{"evalsha", bulk("R"), store.ErrUnknown},
		{"info", "-LOADING\r\n", store.ErrUnavailable},
		{"info", "-NOPERM no\r\n", nil}, // an unknown server
	} {
		s := listed(t, func(name string, _ []string) string {
			if name == c.command {
				return c.answer
			}
			return ""
		})
		pages, err := walk(t, s, 2)
		if !errors.Is(err, c.want) || c.want == nil && strings.Join(pages, "") != "12345" {
			t.Errorf("%s answers %q: %q, %v; want %v", c.command, c.answer, pages, err, c.want)
		}
	}
}

// A count adds the steps of a scan and the records that it had to inspect, each once, but
// is none of a server that was replaced meanwhile, or that gives another answer.
func TestACountAddsTheStepsOfAScan(t *testing.T) {
	t.Parallel()
	step := func(answer ...string) string { return fmt.Sprintf("*%d\r\n", len(answer)) + strings.Join(answer, "") }
	zero, pay := bulk("0"), bulk("Cpay")
	whole := [2]string{
		step(bulk("7"), pay, bulk("2"), bulk("C"+store.ProbeLabel), bulk("5"), bulk(""), listedKey(1), bulk(""), listedKey(2)),
		step(zero, pay, bulk("1"), bulk("Epay"), bulk("1"), bulk(""), listedKey(1), bulk(""), bulk(servicePrefix+"another")),
	}
	for name, c := range map[string]struct {
		steps [2]string
		later string // how the server is called after the scan
		want  error
	}{
		"whole":           {whole, "a", nil},
		"replaced":        {whole, "b", store.ErrUnavailable},
		"empty":           {[2]string{step()}, "a", store.ErrUnknown},
		"odd":             {[2]string{step(zero, pay)}, "a", store.ErrUnknown},
		"no number":       {[2]string{step(zero, pay, bulk("x"))}, "a", store.ErrUnknown},
		"no list":         {[2]string{":0\r\n"}, "a", store.ErrUnavailable},
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
