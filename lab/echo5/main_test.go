// Package labecho5_test has the layers of Echo v5 around the adapter for Echo v5.
package labecho5_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
