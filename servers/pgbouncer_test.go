package servers_test

import (
	"testing"

	"github.com/reprise-go/reprise/servers"
)

func TestPgBouncerPoolsByItsMode(t *testing.T) {
	t.Parallel()
	s := servers.StartPostgres(t)
	tests := []struct {
		name     string
		settings []string
		leaks    bool // a client's session settings stay for the next
	}{
		{"transaction by default", nil, true},
		{"session", []string{"pool_mode=session"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := s.StartPgBouncer(t, append(tt.settings, "default_pool_size=1")...)
			_, err := b.Exec(t.Context(), "SET statement_timeout = 77777")
			servers.Must(t, err)
			if rows, err := b.Exec(t.Context(), "SHOW statement_timeout"); err != nil || (rows[0][0] == "77777ms") != tt.leaks {
				t.Errorf("the next client has a statement_timeout of %v, %v", rows, err)
			}
		})
	}
}
