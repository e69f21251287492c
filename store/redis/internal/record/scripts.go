package record

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	"embed"
	"encoding/hex"
	"strings"
)

// sources has the parts of the scripts. Each script starts with record.lua, which reads
// the record, except that slim.lua comes before it. A script that changes a claim ends
// with write.lua or forget.lua.
//
//go:embed lua/*.lua
var sources embed.FS

// The first line of a script declares flags. That of claims has none: then, when memory
// is full, the server refuses the write itself, and scripts that only replay still work;
// with flags it would refuse the whole script.
const (
	plain    = ""
	allowOOM = "#!lua flags=allow-oom\n"
	readOnly = "#!lua flags=no-writes\n"
	scanning = "#!lua flags=no-writes,allow-cross-slot-keys\n"
)

// The scripts, one for each operation on a record, with the tags of their answers besides
// TagCorrupt and TagBothKeys.
var (
	ClaimScript    = newScript(plain, "+=PMLCE", "record", "readable", "payload", "claim", "write")
	RenewScript    = newScript(allowOOM, "WFX", "record", "readable", "renew", "write")
	CompleteScript = newScript(allowOOM, "DX", "slim", "record", "readable", "complete")
	ReleaseScript  = newScript(allowOOM, "WN", "record", "readable", "release", "forget")
	UnknownScript  = newScript(allowOOM, "WX", "record", "readable", "unknown", "write")
	InspectScript  = newScript(readOnly, "RN", "record", "digest", "payload", "inspect")
	ResolveScript  = newScript(allowOOM, "WN", "record", "digest", "payload", "resolve", "forget")
	CountScript    = newScript(scanning, "", "count")
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
	source := []byte(flags)
	for _, part := range parts {
		text, err := sources.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err)
		}
		source = append(source, text...)
	}
	sum := sha1.Sum(source) //nolint:gosec // Redis names scripts by SHA-1
	return &Script{Source: string(source), Digest: hex.EncodeToString(sum[:]), answers: answers}
}
