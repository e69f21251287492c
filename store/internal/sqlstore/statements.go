package sqlstore

import (
	"cmp"
	"strings"
)

// statements are the texts for one table. Those that write a row end with the id, the
// fence and the revision of the row that was read: see [Dialect].
type statements struct {
	look, list, now                         string
	insert, claim, renew, complete, unknown string
	touch, forget, purge, empty             string
}

// Statements returns the statements of the schema of a table.
func (d *Dialect) Statements(table string) []string {
	list := make([]string, len(d.Schema))
	for i, text := range d.Schema {
		list[i] = d.load(table, text)
	}
	return list
}

// load puts the names of a table, and what else differs between databases, into a
// statement.
func (d *Dialect) load(table, text string) string {
	return strings.NewReplacer(
		"{records}", d.Quote(table), "{due}", d.Quote(table+"_due"), "{clock}", cmp.Or(d.Clock, "0"), "{columns}", columns,
	).Replace(text)
}

const same = " WHERE id = ? AND fence = ? AND revision = ?"

func (d *Dialect) statements(table string) statements {
	load := func(text string) string { return d.load(table, text) }
	// The deletion and the emptying of a purge select the rows in a subquery of a subquery:
	// MySQL reads no table that it writes, unless it has to keep the result.
	due := func(what string) string {
		return "id IN (SELECT id FROM (SELECT id FROM {records} WHERE due_at <= ? AND " + what + " ORDER BY due_at LIMIT ?) AS due)"
	}
	return statements{
		// One row, also where there is no record.
		look: load("SELECT {clock}, {columns}, r.payload FROM (SELECT 1) AS always LEFT JOIN {records} AS r ON r.id = ?"),
		list: load("SELECT {clock}, {columns} FROM {records} AS r WHERE r.id > ? ORDER BY r.id LIMIT ?"),

		now: load("SELECT {clock}"),

		insert: load("INSERT INTO {records} (attempt, fence, owner, fingerprint, claimed_at, lease_until, valid_until, due_at, at_most_once, " +
			"label, description, retention, horizon, id, version, state, revision, replay_until, reason) " +
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, 1, 0, '')"),
		claim: load("UPDATE {records} SET attempt = ?, fence = ?, owner = ?, fingerprint = ?, claimed_at = ?, lease_until = ?, valid_until = ?, " +
			"due_at = ?, at_most_once = ?, label = ?, description = ?, retention = ?, horizon = ?, " +
			"version = 1, state = 1, revision = revision + 1, replay_until = 0, reason = '', payload = NULL" + same),
		renew: load("UPDATE {records} SET lease_until = ?, revision = revision + 1" + same),
		complete: load("UPDATE {records} SET state = 2, revision = revision + 1, owner = ?, payload = ?, lease_until = ?, replay_until = ?, " +
			"valid_until = ?, due_at = ?, retention = ?, horizon = ?, reason = ''" + same),
		unknown: load("UPDATE {records} SET revision = revision + 1, owner = ?, reason = ?, at_most_once = 1, lease_until = ?, valid_until = ?, " +
			"due_at = ?" + same),
		touch:  load("UPDATE {records} SET revision = revision + 1" + same),
		forget: load("DELETE FROM {records}" + same),

		purge: load("DELETE FROM {records} WHERE " + due("valid_until <= ? AND NOT (state = 1 AND lease_until > ?)")),
		empty: load("UPDATE {records} SET payload = NULL, due_at = valid_until, revision = revision + 1 WHERE " +
			due("version = 1 AND state = 2 AND valid_until > ? AND payload IS NOT NULL")),
	}
}
