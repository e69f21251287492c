package client_test

import (
	"log"
	"os"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	if redis := os.Getenv(shopRedis); redis != "" {
		log.Fatal(serveShop(redis))
	}
	labtest.Main(m)
}
