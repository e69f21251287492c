package reprisepg

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// names are the objects of the schema of one table, quoted. PostgreSQL cuts identifiers
// at 63 bytes, and the longest suffix of the table has 13.
type names struct {
	schema              string // not quoted
	table               string // not quoted, with the schema
	records, migrations string
	functions           []string // in the order of the variable functions
	signatures          []string // the same, with the types of their parameters
}

// functions are the functions that this release calls: the placeholder, the suffix with
// the version, and the types of the parameters.
var functions = []struct{ placeholder, suffix, parameters string }{
	{"claims", "_claims_v1", "bytea[], bytea[], bytea[], bigint[], bigint[], bigint[], text[], smallint[], text[], boolean"},
	{"completes", "_completes_v1", "bytea[], bytea[], bytea[], bigint[], bigint[]"},
}

// newNames returns the names of a table in a schema.
func newNames(table, schema string) names {
	quote := func(suffix string) string { return pgx.Identifier{schema, table + suffix}.Sanitize() }
	n := names{schema: schema, table: schema + "." + table, records: quote(""), migrations: quote("_migrations")}
	for _, f := range functions {
		n.functions = append(n.functions, quote(f.suffix))
		n.signatures = append(n.signatures, quote(f.suffix)+"("+f.parameters+")")
	}
	return n
}

// load returns a statement of this table: the text of sql/file.sql, without its comments.
func (n *names) load(file string) string { return n.fill(withoutComments(readSQL(file + ".sql"))) }

// fill replaces the placeholders of a text by names, and by conditions that several
// statements share.
func (n *names) fill(text string) string {
	for _, part := range []string{"completion", "readable", "replayed", "purgeable"} {
		text = strings.ReplaceAll(text, "{"+part+"}", withoutComments(readSQL(part+".sql")))
	}
	pairs := []string{
		"{clock}", clock,
		"{late}", late,
		"{records}", n.records,
		"{records_literal}", "'" + n.records + "'",
	}
	for i, f := range functions {
		pairs = append(pairs, "{"+f.placeholder+"}", n.functions[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// readSQL returns a file of sql. It panics if the file is missing, which is a bug in this
// package.
func readSQL(file string) string {
	text, err := sqlFiles.ReadFile("sql/" + file)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withoutComments removes the lines that are only a comment, because every call would
// send them.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}
