package command

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// file is a file for another tool.
type file struct {
	name    string // with slashes
	content []byte
	replace bool // overwrite a file with other content
}

// migrationFiles returns the files of a format.
func migrationFiles(list []store.Migration, format string, down bool) ([]file, error) {
	if down && format != "sql" {
		return nil, usage("--down goes with --format sql; the other formats have both directions")
	}
	switch format {
	case "sql":
		return sqlFiles(list, down), nil
	case "goose":
		var files []file
		for _, m := range list {
			files = append(files, file{name: m.Name + ".sql", content: []byte(m.Goose)})
		}
		return files, nil
	case "golang-migrate":
		var files []file
		for _, m := range list {
			files = append(files, file{name: m.Name + ".up.sql", content: []byte(m.SQL)}, file{name: m.Name + ".down.sql", content: []byte(m.Down)})
		}
		return files, nil
	case "atlas":
		return atlasFiles(list), nil
	}
	return nil, usage("--format is %q, want sql, goose, atlas or golang-migrate", format)
}

func sqlFiles(list []store.Migration, down bool) []file {
	var files []file
	for _, m := range list {
		text := m.SQL
		if down {
			text = m.Down
		}
		files = append(files, file{name: m.Name + ".sql", content: []byte(text)})
	}
	if down {
		slices.Reverse(files)
	}
	return files
}

// atlasFiles returns a directory of Atlas. Atlas finds out itself how to undo a
// migration, and refuses other .sql files in the directory. So the statements that undo
// the migrations are in a folder below, for a person to run.
func atlasFiles(list []store.Migration) []file {
	var up, down []file
	for _, m := range list {
		up = append(up, file{name: m.Name + ".sql", content: []byte(m.SQL)})
		down = append(down, file{name: "down/" + m.Name + ".sql", content: []byte(m.Down)})
	}
	return slices.Concat(up, down, []file{{name: "atlas.sum", content: atlasSum(up), replace: true}})
}

// atlasSum returns the atlas.sum of files: for each file the digest of all files up to
// it, and a digest of these digests.
func atlasSum(files []file) []byte {
	running, total := sha256.New(), sha256.New()
	var lines strings.Builder
	for _, f := range files {
		running.Write([]byte(f.name))
		running.Write(f.content)
		digest := base64.StdEncoding.EncodeToString(running.Sum(nil))
		total.Write([]byte(f.name))
		total.Write([]byte(digest))
		fmt.Fprintf(&lines, "%s h1:%s\n", f.name, digest)
	}
	return []byte("h1:" + base64.StdEncoding.EncodeToString(total.Sum(nil)) + "\n" + lines.String())
}
