package reprisepg

import (
	"embed"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql for one table, without their comments.
type statements struct {
	names

	// Of every request, prepared where sessions keep statements.
	claimNew, claimLook, completeOwn, claims, completes *statement

	// Of an attempt of the transactional store.
	begin, open, limit, seen, keep, replace, same, locked, commit, rollback, waiting *statement

	// Of the look for a lost COMMIT.
	beginLook, waitForLock, takeLock, committed *statement

	claim, renew, complete, release string
	claimWaited, claimValid         string
	purge, inspect, list            string
	resolve, forget, discard        string
	purgeable                       string
}

// names are what the schema of one table consists of, quoted.
type names struct {
	records, migrations, expiry string
	functions                   []string // in the order of functions
	signatures                  []string // the same with the types of their parameters
	lock                        string   // what the advisory locks of the table are derived from; not quoted
}

// functions are the functions that this release calls: the placeholder, the suffix with
// the version, and the types of the parameters.
var functions = []struct{ placeholder, suffix, parameters string }{
	{"claim", "_claim_v1", "bytea, bytea, bytea, boolean, integer, bigint, bigint, text"},
	{"complete", "_complete_v1", "bytea, bytea, bytea, bigint"},
	{"claims", "_claims_v1", "bytea[], bytea[], bytea[], text[], bigint[], interval[], interval[], interval[], boolean"},
	{"completes", "_completes_v1", "bytea[], bytea[], bytea[], interval[]"},
}

func newNames(c Config) names {
	quote := func(suffix string) string { return pgx.Identifier{c.Schema, c.Table + suffix}.Sanitize() }
	n := names{
		records:    quote(""),
		migrations: quote("_migrations"),
		expiry:     pgx.Identifier{c.Table + "_expires_at"}.Sanitize(),
		lock:       c.Schema + "." + c.Table,
	}
	for _, f := range functions {
		n.functions = append(n.functions, quote(f.suffix))
		n.signatures = append(n.signatures, quote(f.suffix)+"("+f.parameters+")")
	}
	return n
}

// beginSQL is the statement that begins a transaction.
func beginSQL(isolation pgx.TxIsoLevel) string {
	return "BEGIN ISOLATION LEVEL " + string(isolation) + " READ WRITE"
}

// newStatements names the table in every statement.
func newStatements(c Config) statements {
	s := statements{names: newNames(c)}
	load := func(file string) string { return s.fill(withoutComments(readSQL("sql/" + file))) }
	prepared := func(file string) *statement { return newStatement(load(file)) }
	s.claimNew, s.claimLook, s.completeOwn = prepared("claim_new.sql"), prepared("claim_look.sql"), prepared("complete_own.sql")
	s.claims, s.completes = prepared("claims.sql"), prepared("completes.sql")
	s.claim, s.renew, s.complete, s.release = load("claim.sql"), load("renew.sql"), load("complete.sql"), load("release.sql")
	s.begin, s.beginLook = newStatement(beginSQL(c.Isolation)), newStatement(beginSQL(pgx.ReadCommitted))
	s.commit, s.rollback = newStatement("COMMIT"), newStatement("ROLLBACK")
	s.open, s.seen, s.keep, s.replace = prepared("open.sql"), prepared("seen.sql"), prepared("keep.sql"), prepared("replace.sql")
	s.same, s.locked, s.limit = prepared("same.sql"), prepared("locked.sql"), prepared("limit.sql")
	s.waitForLock, s.takeLock, s.committed = prepared("wait_for_lock.sql"), prepared("take_lock.sql"), prepared("committed.sql")
	s.waiting, s.claimWaited, s.claimValid = prepared("waiting.sql"), load("claim_waited.sql"), load("claim_valid.sql")
	s.purge, s.inspect, s.list = load("purge.sql"), load("inspect.sql"), load("list.sql")
	s.resolve, s.forget, s.discard = load("resolve.sql"), load("forget.sql"), load("discard.sql")
	s.purgeable = load("purgeable.sql")
	return s
}

// fill puts the names, and the conditions that several statements share, into a text.
func (n *names) fill(text string) string {
	text = strings.ReplaceAll(text, "{verdict}", withoutComments(readSQL("sql/verdict.sql")))
	text = strings.ReplaceAll(text, "{shown}", withoutComments(readSQL("sql/shown.sql")))
	pairs := []string{
		"{readable}", withoutComments(readSQL("sql/readable.sql")),
		"{records}", n.records,
		"{records_literal}", "'" + strings.ReplaceAll(n.records, "'", "''") + "'",
		"{migrations}", n.migrations,
		"{expiry_index}", n.expiry,
		"{scanned_at_once}", strconv.Itoa(scannedAtOnce),
	}
	for i, f := range functions {
		pairs = append(pairs, "{"+f.placeholder+"}", n.functions[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// readSQL returns an embedded file. A missing file is a mistake in this package.
func readSQL(path string) string {
	text, err := sqlFiles.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withoutComments drops the lines that are only a comment: they would travel with every
// call.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}
