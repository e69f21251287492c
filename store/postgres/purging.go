package reprisepg

import (
	"cmp"
	"time"

	"github.com/reprise-go/reprise/store/internal/upkeep"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// The values that a zero [Purging] stands for.
const (
	DefaultPurgeEvery   = time.Minute
	DefaultPurgeBatch   = 1000
	DefaultPurgeTimeout = 30 * time.Second
)

// Purging is the pace at which a store purges while an engine uses it. The zero value is
// the default of every field.
type Purging struct {
	Every   time.Duration // from one round to the next, 1 s or more; zero means a minute, a negative duration no purge
	Batch   int           // how many records one statement deletes or empties, 1 to 100,000; zero means 1,000
	Pause   time.Duration // between two statements of one round; zero means as long as the first of the two took
	Timeout time.Duration // the longest that one statement may take; zero means 30 s
}

func (p Purging) pace() (upkeep.Pace, error) {
	pace := upkeep.Pace{
		Every: cmp.Or(p.Every, DefaultPurgeEvery), Batch: cmp.Or(p.Batch, DefaultPurgeBatch),
		Pause: p.Pause, Timeout: cmp.Or(p.Timeout, DefaultPurgeTimeout),
	}
	switch {
	case pace.Every >= 0 && pace.Every < time.Second:
		return pace, table.Invalid("Config.Purge.Every %v: want 1s or more, or a negative duration for no purge", pace.Every)
	case pace.Batch < 1 || pace.Batch > table.MaxPurge:
		return pace, table.Invalid("Config.Purge.Batch %d: want 1 to %d", pace.Batch, table.MaxPurge)
	case pace.Pause < 0:
		return pace, table.Invalid("Config.Purge.Pause %v: want 0 or more", pace.Pause)
	case pace.Timeout < 0:
		return pace, table.Invalid("Config.Purge.Timeout %v: want 0 or more", pace.Timeout)
	}
	return pace, nil
}
