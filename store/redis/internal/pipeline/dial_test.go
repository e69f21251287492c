package pipeline

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// Where a password is refused, go-redis keeps the connection, as that of the server's
// default user. No call may be sent on it.
func TestRefusedPasswordIsAFailedDial(t *testing.T) {
	t.Parallel()
	s := fakeserver.Start(t, answering("-WRONGPASS invalid username-password pair\r\n"))
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	if c, err := dial(t.Context(), client, limitsOf(client.Options())); err == nil {
		c.end()
		t.Error("there is a connection")
	}
}

// go-redis may dial after its caller left. Such a dial ends without a connection.
func TestDialAfterTheEndMakesNoConnection(t *testing.T) {
	t.Parallel()
	d := &dialling{ctx: t.Context(), dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("it dials")
		return nil, errors.New("refused")
	}}
	if c := d.end(); c != nil {
		t.Errorf("a connection before any dial: %v", c)
	}
	if c, err := d.run(t.Context(), "tcp", "127.0.0.1:1"); c != nil || !errors.Is(err, errRetired) {
		t.Errorf("%v, %v; want errRetired", c, err)
	}
}
