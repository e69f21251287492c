package prefix_test

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/store/internal/prefix"
)

func TestPrefixNamesAService(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"orders:", "a", "eu/orders-2/", `*[?]\`, strings.Repeat("p", 128)} {
		if err := prefix.Check(good, "orders:"); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"":                       `is empty: it has no default, because it names the service whose records these are, such as "orders:"`,
		"{orders}:":              "a brace",
		"orders}":                "a brace",
		"my orders:":             `is "my orders:", want visible`,
		" ":                      `is " ", want visible`,
		"orders\x00":             `is "orders\x00", want visible`,
		"orders\n":               `is "orders\n", want visible`,
		"orders\x7f":             `is "orders\x7f", want visible`,
		"bücher:":                "want visible",
		"orders\xff":             "want visible",
		strings.Repeat("p", 129): "has 129 bytes, want at most 128",
		strings.Repeat("p", 200): "has 200 bytes, want at most 128",
	} {
		if err := prefix.Check(bad, "orders:"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
}
