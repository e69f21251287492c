package main

import (
	"slices"
	"testing"
)

func TestThePictureIsHeldAgainstTheImports(t *testing.T) {
	t.Parallel()
	const page = "# Rooms\n\n```mermaid\nflowchart BT\n" + `
    protocol["core/protocol"] --> core["core"]
    adapters["adapters/*"] --> protocol
    lab["lab"] --> adapters
` + "```\n"
	honest := []pkg{
		{path: "core"},
		{path: "core/protocol", imports: []string{root + "core"}},
		{path: "adapters/gin", imports: []string{root + "core/protocol", root + "core"}, tests: []string{root + "lab/matrix"}},
		{path: "lab/matrix", tests: []string{root + "adapters/gin", root + "core"}},
	}
	for _, row := range []struct {
		name string
		more pkg
		want []string
	}{
		{"an import along the arrows", pkg{path: "adapters/echo", imports: []string{root + "core"}}, nil},
		{"an import against the arrows", pkg{path: "core/internal/x", imports: []string{root + "adapters/gin"}}, []string{
			"CONTRIBUTING.md: the picture does not lead from core to adapters/*, but core/internal/x imports adapters/gin",
		}},
		{"a room that is not there", pkg{path: "store/redis"}, []string{"CONTRIBUTING.md: the picture has no room for store/redis"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, err := readPicture(page)
			if err != nil {
				t.Fatal(err)
			}
			if got := checkPicture(p, append(slices.Clip(honest), row.more)); !slices.Equal(got, row.want) {
				t.Errorf("violations %q, want %q", got, row.want)
			}
		})
	}
	p, err := readPicture(page)
	if err != nil {
		t.Fatal(err)
	}
	got := checkPicture(p, honest[:3])
	if want := []string{"CONTRIBUTING.md: the picture leads from lab to adapters/*, which nothing there imports"}; !slices.Equal(got, want) {
		t.Errorf("without the lab: violations %q, want %q", got, want)
	}
	if _, err := readPicture("# Rooms\n"); err == nil {
		t.Error("a page without a diagram passes")
	}
}
