package servers_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// The bytes of a connection arrive late, but concurrently: a thousand pieces in flight
// take as long as one, and not the minutes that they take one after another.
func TestADelayLineDelaysWithoutLimiting(t *testing.T) {
	t.Parallel()
	const pieces, roundTrip = 1000, 200 * time.Millisecond
	echo, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		conn, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	line := servers.StartDelayLine(t, echo.Addr().String(), roundTrip)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", line.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()

	start := time.Now()
	got := make([]byte, pieces)
	for i := range got {
		if _, err := conn.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the first is on its way before the others are written
			time.Sleep(roundTrip / 4)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("%v after %d of %d pieces", err, n, pieces)
	}
	if took := time.Since(start); took < roundTrip {
		t.Errorf("%d pieces took %v, less than the round trip of %v", pieces, took, roundTrip)
	}
	for i, b := range got {
		if b != byte(i) {
			t.Fatalf("piece %d arrives as %d", i, b)
		}
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	if _, err := conn.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("after the end of the stream: %v, want EOF", err)
	}
}
