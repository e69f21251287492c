package ui_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

func noEnvironment(string) string { return "" }

func TestEverythingWrittenIsHarmless(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\u202e\x9b\r\n"
	var b bytes.Buffer
	s := ui.NewStream(&b, noEnvironment)
	s.Line("text ", hostile, ui.Paint(ui.Bad, "%s", hostile), 7)
	_, _ = s.Write([]byte(hostile))
	table := ui.NewTable("A", ">B")
	table.Row(ui.Piece{Style: ui.Good, Text: hostile}, ui.Piece{Text: "1"})
	s.Table(table, true)
	s.Progress().Show(1, 2, "%s", hostile)
	if got := b.String(); !safe.Clean(got) {
		t.Errorf("written: %q", got)
	}
	styles := ui.NewStyles(true)
	if got, want := styles.Render(ui.Piece{Style: ui.Bad, Text: hostile}), "\x1b[1;31m"+safe.Field(hostile)+"\x1b[0m"; got != want {
		t.Errorf("rendered: %q, want %q", got, want)
	}
}

func TestTableAlignsItsColumns(t *testing.T) {
	t.Parallel()
	styles := ui.NewStyles(false)
	table := ui.NewTable("ID", ">AGE", "LABEL")
	table.Row(ui.Piece{Text: "東京"}, ui.Piece{Text: "5m"}, ui.Piece{Text: "a"})
	table.Row(ui.Piece{Text: "x"}, ui.Piece{Text: "3d 4h"}, ui.Piece{Text: "b\n"})
	got := strings.Join(table.Lines(&styles, 0), "\n")
	want := "ID      AGE  LABEL\n東京     5m  a\nx     3d 4h  b\\n"
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

// A narrow terminal gets lines that fit: cells are cut, and then columns are left out.
func TestTableFits(t *testing.T) {
	t.Parallel()
	styles := ui.NewStyles(false)
	table := ui.NewTable("ID", "?>SIZE", "?ATTEMPT", "~REQUEST")
	table.Row(ui.Piece{Text: "0123456789ab"}, ui.Piece{Text: "1 B"}, ui.Piece{Text: "1"}, ui.Piece{Text: "POST /東京/orders?tenant=acme"})
	for width, want := range map[int]string{
		0:  "ID            SIZE  ATTEMPT  REQUEST\n0123456789ab   1 B  1        POST /東京/orders?tenant=acme",
		40: "ID            SIZE  ATTEMPT  REQUEST\n0123456789ab   1 B  1        POST /東京…",
		34: "ID            SIZE  REQUEST\n0123456789ab   1 B  POST /東京/or…",
		24: "ID            REQUEST\n0123456789ab  POST /東…",
		9:  "ID            REQUEST\n0123456789ab  POST /東…",
	} {
		if got := strings.Join(table.Lines(&styles, width), "\n"); got != want {
			t.Errorf("in %d columns:\n%s\nwant:\n%s", width, got, want)
		}
	}
}

func TestDurationsSizesAndNumbers(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0µs", 350 * time.Millisecond: "350ms", 12 * time.Second: "12s", 303 * time.Second: "5m 3s", 2 * time.Hour: "2h",
		76 * time.Hour: "3d 4h", -time.Minute: "-1m",
	} {
		if got := ui.Duration(d); got != want {
			t.Errorf("Duration(%v) is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 12: "12", -123: "-123"} {
		if got := ui.Count(n); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{5: "5 B", 1536: "1.5 KiB", 3 << 20: "3.0 MiB"} {
		if got := ui.Bytes(n); got != want {
			t.Errorf("Bytes(%d) is %q, want %q", n, got, want)
		}
	}
}
