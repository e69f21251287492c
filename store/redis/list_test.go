package repriseredis

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
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
		var text []byte
		for _, r := range page.Records {
			text = append(text, '0'+r.ID[31])
		}
		pages = append(pages, string(text))
		if q.After = page.Next; q.After == "" {
			return pages, nil
		}
	}
	t.Fatal("a listing without an end")
	return nil, nil
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
