package reprisepg

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql for one table, without their comments.
type statements struct {
	claim, renew, complete, release          string
	purge, inspect, list, resolve, forget    string
	attempt, keep, settle                    string
	records, fence, migrations, expiry, name string // names, quoted; name is schema and table as they are
}

// newStatements names the table in every statement.
func newStatements(c Config) statements {
	s := statements{
		records:    pgx.Identifier{c.Schema, c.Table}.Sanitize(),
		fence:      pgx.Identifier{c.Schema, c.Table + "_fence"}.Sanitize(),
		migrations: pgx.Identifier{c.Schema, c.Table + "_migrations"}.Sanitize(),
		expiry:     pgx.Identifier{c.Table + "_expires_at"}.Sanitize(),
		name:       c.Schema + "." + c.Table,
	}
	load := func(file string) string { return s.fill(withoutComments(readSQL("sql/" + file))) }
	s.claim, s.renew, s.complete, s.release = load("claim.sql"), load("renew.sql"), load("complete.sql"), load("release.sql")
	s.purge, s.inspect, s.list = load("purge.sql"), load("inspect.sql"), load("list.sql")
	s.resolve, s.forget = load("resolve.sql"), load("forget.sql")
	s.attempt, s.keep, s.settle = load("attempt.sql"), load("keep.sql"), load("settle.sql")
	return s
}

// fill puts the names, and the decisions that several statements share, into the text of a statement.
func (s *statements) fill(text string) string {
	text = strings.ReplaceAll(text, "{verdict}", withoutComments(readSQL("sql/verdict.sql")))
	return strings.NewReplacer(
		"{readable}", withoutComments(readSQL("sql/readable.sql")),
		"{records}", s.records,
		"{fence}", s.fence,
		"{fence_literal}", "'"+strings.ReplaceAll(s.fence, "'", "''")+"'",
		"{migrations}", s.migrations,
		"{expiry_index}", s.expiry,
	).Replace(text)
}

// readSQL returns an embedded file; that one is missing can only be a mistake in this package.
func readSQL(path string) string {
	text, err := sqlFiles.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withoutComments drops the lines that are only a comment: they would travel with every call.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}
