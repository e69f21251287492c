package pipeline

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

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

// addressed is a connection to an address.
type addressed struct {
	recorder
	to string
}

func (a *addressed) RemoteAddr() net.Addr { return address(a.to) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// A pipeline leaves a server that is not the primary any more, and no other.
func TestPipelineLeavesAFormerPrimary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, now string
		err       error
		leaves    bool
	}{
		{"the same", "a:1", nil, false},
		{"another", "b:1", nil, true},
		{"unknown", "", errors.New("no sentinel"), false},
	} {
		client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &addressed{to: c.now}, c.err
		}})
		t.Cleanup(func() { _ = client.Close() })
		p := New(client).Of(client)
		conn := &conn{Conn: &addressed{to: "a:1"}}
		p.conn.Store(conn)
		p.verify(t.Context(), conn)
		if conn.isEnded() != c.leaves || (p.conn.Load() == nil) != c.leaves {
			t.Errorf("%s: ended %v, left %v; want %v", c.name, conn.isEnded(), p.conn.Load() == nil, c.leaves)
		}
	}
}

// Only a client that asks sentinels for the primary is asked for it again.
func TestOnlyClientsBehindSentinelsAreVerified(t *testing.T) {
	t.Parallel()
	behind := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}, DialTimeout: time.Second})
	single := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _, _ = behind.Close(), single.Close() })
	if !New(behind).Of(behind).sentinel || New(single).Of(single).sentinel {
		t.Error("a client behind sentinels is taken for another")
	}
}
