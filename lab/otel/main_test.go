// Package otel_test shows the reports of package repriseotel: metrics as Prometheus
// scrapes them, alerts and a dashboard over those metrics, and spans. It is a separate
// module, because Prometheus is large.
package otel_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
