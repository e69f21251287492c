package client_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	if redis := os.Getenv(shopRedis); redis != "" {
		slog.Error("the shop ended", slog.Any("err", serveShop(redis)))
		os.Exit(1)
	}
	labtest.Main(m)
}
