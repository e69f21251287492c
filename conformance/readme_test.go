package conformance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/storetest"
)

// The README says how many cases there are; it is read before anything else, so it has to be true.
func TestReadmeCountsTheCases(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("%d cases show what clients observe", len(adaptertest.Cases())),
		fmt.Sprintf("%d more show the store contract", len(storetest.Cases())),
	} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}
