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
	names

	claim, renew, complete, release       string
	attempt, keep, settle                 string
	purge, inspect, list, resolve, forget string
}

// names are what the schema of one table consists of, quoted.
type names struct {
	records, fence, migrations, expiry string
	functions                          []string // in the order of functionNames
	lock                               string   // what the advisory locks of the table are derived from; not quoted
}

// functionNames are the functions of the schema, as placeholders and without their version.
var functionNames = []string{"claim", "complete", "attempt", "keep"}

func newNames(c Config) names {
	quote := func(suffix string) string { return pgx.Identifier{c.Schema, c.Table + suffix}.Sanitize() }
	n := names{
		records:    quote(""),
		fence:      quote("_fence"),
		migrations: quote("_migrations"),
		expiry:     pgx.Identifier{c.Table + "_expires_at"}.Sanitize(),
		lock:       c.Schema + "." + c.Table,
	}
	for _, name := range functionNames {
		n.functions = append(n.functions, quote("_"+name+"_v1"))
	}
	return n
}

// newStatements names the table in every statement.
func newStatements(c Config) statements {
	s := statements{names: newNames(c)}
	load := func(file string) string { return s.fill(withoutComments(readSQL("sql/" + file))) }
	s.claim, s.renew, s.complete, s.release = load("claim.sql"), load("renew.sql"), load("complete.sql"), load("release.sql")
	s.attempt, s.keep, s.settle = load("attempt.sql"), load("keep.sql"), load("settle.sql")
	s.purge, s.inspect, s.list = load("purge.sql"), load("inspect.sql"), load("list.sql")
	s.resolve, s.forget = load("resolve.sql"), load("forget.sql")
	return s
}

// fill puts the names, and the conditions that several statements share, into a text.
func (n *names) fill(text string) string {
	text = strings.ReplaceAll(text, "{verdict}", withoutComments(readSQL("sql/verdict.sql")))
	pairs := []string{
		"{readable}", withoutComments(readSQL("sql/readable.sql")),
		"{records}", n.records,
		"{fence}", n.fence,
		"{fence_literal}", "'" + strings.ReplaceAll(n.fence, "'", "''") + "'",
		"{migrations}", n.migrations,
		"{expiry_index}", n.expiry,
	}
	for i, name := range functionNames {
		pairs = append(pairs, "{"+name+"}", n.functions[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
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
