package repriseredis

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	_ "embed"
	"encoding/hex"
)

// The sources of the scripts. recordSource goes in front of each, and writeSource behind
// those that change a record.
var (
	//go:embed lua/record.lua
	recordSource string
	//go:embed lua/write.lua
	writeSource string
	//go:embed lua/claim.lua
	claimSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/complete.lua
	completeSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/inspect.lua
	inspectSource string
	//go:embed lua/resolve.lua
	resolveSource string
)

// The first line of a script says what it may do. A claim has none: without flags the
// server refuses a write when memory is full, at the write, so that replays still answer;
// with flags it would refuse the whole script.
const (
	plain    = ""
	allowOOM = "#!lua flags=allow-oom\n"
	readOnly = "#!lua flags=no-writes\n"
)

var (
	claimScript    = newScript(plain, claimSource+writeSource)
	renewScript    = newScript(allowOOM, renewSource+writeSource)
	completeScript = newScript(allowOOM, completeSource+writeSource)
	releaseScript  = newScript(allowOOM, releaseSource)
	inspectScript  = newScript(readOnly, inspectSource)
	resolveScript  = newScript(allowOOM, resolveSource+writeSource)
)

// script is the source of a Lua script and the digest by which the server knows it, both
// as command arguments: an interface that is made once is not allocated again for each
// command.
type script struct {
	source, digest any
}

func newScript(flags, body string) *script {
	source := flags + recordSource + body
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names scripts by SHA-1
	return &script{source: source, digest: hex.EncodeToString(sum[:])}
}
