package record

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	_ "embed"
	"encoding/hex"
	"strings"
)

// The parts of the scripts. Each script starts with record.lua, which reads the record,
// except that slim.lua comes before it. A script that changes a claim ends with write.lua
// or forget.lua.
var (
	//go:embed lua/record.lua
	recordSource string
	//go:embed lua/readable.lua
	readableSource string
	//go:embed lua/write.lua
	writeSource string
	//go:embed lua/digest.lua
	digestSource string
	//go:embed lua/payload.lua
	payloadSource string
	//go:embed lua/claim.lua
	claimSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/slim.lua
	slimSource string
	//go:embed lua/complete.lua
	completeSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/unknown.lua
	unknownSource string
	//go:embed lua/forget.lua
	forgetSource string
	//go:embed lua/inspect.lua
	inspectSource string
	//go:embed lua/resolve.lua
	resolveSource string
)

// The first line of a script declares flags. That of claims has none: then, when memory
// is full, the server refuses the write itself, and scripts that only replay still work;
// with flags it would refuse the whole script.
const (
	plain    = ""
	allowOOM = "#!lua flags=allow-oom\n"
	readOnly = "#!lua flags=no-writes\n"
)

// The scripts, one for each operation on a record, with the tags of their answers besides
// TagCorrupt and TagBothKeys.
var (
	ClaimScript    = newScript(plain, "+=PMLCE", recordSource, readableSource, payloadSource, claimSource, writeSource)
	RenewScript    = newScript(allowOOM, "WFX", recordSource, readableSource, renewSource, writeSource)
	CompleteScript = newScript(allowOOM, "DX", slimSource, recordSource, readableSource, completeSource)
	ReleaseScript  = newScript(allowOOM, "WN", recordSource, readableSource, releaseSource, forgetSource)
	UnknownScript  = newScript(allowOOM, "WX", recordSource, readableSource, unknownSource, writeSource)
	InspectScript  = newScript(readOnly, "RUN", recordSource, digestSource, payloadSource, inspectSource)
	ResolveScript  = newScript(allowOOM, "WN", recordSource, digestSource, payloadSource, resolveSource, forgetSource)
)

// Script is the source of a Lua script and the digest by which the server knows it. Both
// are of type any, as arguments of commands are, so that no command has to allocate them.
type Script struct {
	Source, Digest any
	answers        string
}

// Answers reports whether the script may answer with tag.
func (s *Script) Answers(tag byte) bool { return strings.IndexByte(s.answers, tag) >= 0 }

func newScript(flags, answers string, parts ...string) *Script {
	source := flags + strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names scripts by SHA-1
	return &Script{Source: source, Digest: hex.EncodeToString(sum[:]), answers: answers}
}
