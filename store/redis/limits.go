package repriseredis

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// payloadLimit is the size of the largest payload that may pass a server, and the setting
// that bounds it. A larger payload never passes. The name is empty when no setting that
// the server shows is below [math.MaxInt64].
type payloadLimit struct {
	size int64
	name string
}

// payloadLimitOf asks a server for the settings that bound the payload of a completion.
// It knows no limit of a server that refuses CONFIG.
func payloadLimitOf(ctx context.Context, server *redis.Client) payloadLimit {
	least := payloadLimit{size: math.MaxInt64}
	for _, of := range []struct {
		name   string
		framed int64 // bytes that count besides those of the payload
	}{
		{"client-query-buffer-limit", int64(len("\r\n"))}, // closes the connection
		{"proto-max-bulk-len", 0},                         // answers an error, and closes the connection
		{"maxmemory-clients", 0},                          // of all connections together: closes the largest
	} {
		size, known := setSize(ctx, server, of.name)
		if !known {
			break // it is away, or refuses CONFIG
		}
		if size > 0 && size-of.framed < least.size {
			least = payloadLimit{size: size - of.framed, name: of.name}
		}
	}
	return least
}

// setSize returns a setting in bytes, and zero for none. A percentage is of maxmemory.
func setSize(ctx context.Context, server *redis.Client, name string) (size int64, known bool) {
	value := setting(ctx, server, name)
	text, isShare := strings.CutSuffix(value, "%")
	n, _ := strconv.ParseInt(text, 10, 64)
	if isShare {
		memory, _ := strconv.ParseInt(setting(ctx, server, "maxmemory"), 10, 64)
		n *= memory / 100
	}
	return n, value != unknownSetting
}

// refuse returns why a payload of size bytes does not pass, and nil when it may.
func (l payloadLimit) refuse(size int) error {
	if int64(size) <= l.size {
		return nil
	}
	return special{fmt.Errorf("%s of the server lets no payload of more than %d bytes pass, and this one has %d", l.name, l.size, size), full}
}
