// Package console_test drives the console as a person does: in Chromium, over real Redis
// and PostgreSQL. It is a module of its own, so that a refused browser driver takes down
// nothing else.
package console_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
