package transactional

import (
	"testing"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestStepsIgnoreRowsWithoutAReader: such as the one that a SELECT of a function answers.
func TestStepsIgnoreRowsWithoutAReader(t *testing.T) {
	t.Parallel()
	var b steps
	st := wire.NewStatement("SELECT 1")
	b.add(st, nil, []byte("value"))
	if c := b.calls[0]; c.Statement != st || len(c.Values) != 1 {
		t.Errorf("the step is %+v", c)
	}
	b.calls[0].Read(&wire.Row{})
}
