// Package console_test drives the console as a person does: in Chromium, over real Redis
// and PostgreSQL. It is a separate module, so that a refused browser driver takes down
// only this test.
package console_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
