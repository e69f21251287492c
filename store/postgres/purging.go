package reprisepg

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// The values that a zero [PurgerConfig] stands for.
const (
	DefaultPurgeEvery   = time.Minute
	DefaultPurgeBatch   = 1000
	DefaultPurgeTimeout = 30 * time.Second
)

// PurgerConfig sets the pace of RunPurger. The zero value is the default of every
// field.
type PurgerConfig struct {
	Every   time.Duration // between two rounds, 1 s or more; zero means a minute
	Batch   int           // records that one statement deletes or empties, 1 to 100,000; zero means 1,000
	Pause   time.Duration // between two statements of one round; zero means none
	Timeout time.Duration // the longest that one statement may take; zero means 30 s
}

func (c PurgerConfig) withDefaults() (PurgerConfig, error) {
	if c.Every == 0 {
		c.Every = DefaultPurgeEvery
	}
	if c.Batch == 0 {
		c.Batch = DefaultPurgeBatch
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultPurgeTimeout
	}
	switch {
	case c.Every < time.Second:
		return c, table.Invalid("PurgerConfig.Every %v: want 1s or more", c.Every)
	case c.Batch < 1 || c.Batch > table.MaxPurge:
		return c, table.Invalid("PurgerConfig.Batch %d: want 1 to %d", c.Batch, table.MaxPurge)
	case c.Pause < 0:
		return c, table.Invalid("PurgerConfig.Pause %v: want 0 or more", c.Pause)
	case c.Timeout < 0:
		return c, table.Invalid("PurgerConfig.Timeout %v: want 0 or more", c.Timeout)
	}
	return c, nil
}

// RunPurger purges at once and then about every [PurgerConfig.Every], until ctx ends;
// then it returns nil. One process needs to do it, and every process may. A purge that
// fails is logged and tried again in the next round. It returns an error, ErrInvalid,
// only for c.
func (o *operations) RunPurger(ctx context.Context, c PurgerConfig) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	o.table.RunPurger(ctx, table.PurgePace(c))
	return nil
}
