package servers_test

import (
	"os"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role, m))
	}
	os.Exit(servers.Main{M: m}.Run())
}
