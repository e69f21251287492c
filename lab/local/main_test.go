// Package local proves the cache of completed records over real servers.
package local

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
