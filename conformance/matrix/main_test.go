package matrix

import (
	"os"
	"testing"

	"github.com/reprise-go/reprise/conformance/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }
