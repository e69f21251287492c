package sqlstore

import (
	"cmp"
	"strconv"
	"strings"
)

// statements are the texts for one table. Those that write a row take, as their last
// parameters, the id, the fence and the revision of the row that was read and, if the
// dialect has [Dialect.Late], its until.
type statements struct {
	look, wait, free, hold, now       string
	inspect, list                     string
	unfinished, finished              string
	insert, insertHastily             string
	claim, renew, complete, unknown   string
	completeOwn, completeHeld         string
	touch, remove, empty, purge, trim string
	await                             string
	dueToPurge, dueToTrim             string
}

// load replaces the placeholders of a statement by the names of a table, and by the parts
// that databases write differently.
func (d *Dialect) load(table, text string) string {
	only := func(condition, value string) string {
		if condition == "" {
			return value
		}
		return "CASE WHEN " + condition + " THEN " + value + " END"
	}
	fresh := func(clock, stale string) string {
		if d.Stale == "" {
			return clock
		}
		return "CASE WHEN " + d.Stale + " THEN " + stale + " ELSE " + clock + " END"
	}
	clock := cmp.Or(d.Clock, "0")
	timely := only(d.Timely, clock)
	guarded := only(d.Guard, timely)
	text = strings.NewReplacer(
		"{clock}", clock, "{guarded}", guarded, "{current}", fresh(guarded, "-1"), "{held}", fresh(timely, "-1"),
		"{fence}", d.Told+"("+fresh(guarded, "NULL")+" + ?)", "{late}", cmp.Or(d.Late, "0"),
		"{columns}", columns, "{details}", details,
		"{records}", d.Quote(table), "{due}", d.Quote(table+"_due"), "{migrations}", d.Quote(table+"_migrations"),
	).Replace(text)
	if !d.Numbered {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// The rows that a purge deletes and empties, besides due_at.
const (
	toPurge = "valid_until <= ? AND NOT (state = 1 AND lease_until > ?)"
	toTrim  = "version = 1 AND state = 2 AND valid_until > ? AND payload IS NOT NULL"
)

// dueInBytes counts the rows that are due, of at most ?, and the first of them whose
// payloads take at most ? bytes, with the due_at of the last of these. One always counts.
const dueInBytes = "SELECT COUNT(*), SUM(few), MAX(CASE WHEN few = 1 THEN due_at END) FROM (SELECT due_at, " +
	"CASE WHEN SUM(size) OVER sofar <= ? OR SUM(size) OVER sofar = size THEN 1 ELSE 0 END AS few FROM " +
	"(SELECT id, due_at, COALESCE(LENGTH(payload), 0) AS size FROM {records} WHERE {which} ORDER BY due_at LIMIT ?) AS due " +
	"WINDOW sofar AS (ORDER BY due_at, id ROWS UNBOUNDED PRECEDING)) AS counted"

func (d *Dialect) statements(table string) statements {
	load := func(text string) string { return d.load(table, text) }
	same := " WHERE id = ? AND fence = ? AND revision = ?"
	if d.Late != "" {
		same += " AND ? > " + d.Late
	}
	due := func(change, which string) string {
		return load(strings.NewReplacer("{which}", "due_at <= ? AND "+which, "{set}", "payload = NULL, due_at = valid_until, revision = revision + 1").
			Replace(change))
	}
	const (
		from  = " FROM (SELECT 1) AS always LEFT JOIN {records} AS r ON r.id = ?" // one row, also where there is no record
		look  = "SELECT {current}, {columns}, r.payload" + from
		found = ", {columns}, r.payload FROM {records} AS r WHERE r.id = ?"
	)
	// A completed row is readable if it is formed. In a CASE, the condition leaves planners
	// a guess of how many rows have it with which they use all processes and no sort.
	conditions := []string{"LENGTH(r.owner) = 16", "LENGTH(r.fingerprint) = 32"}
	if !d.Numbered { // a text in a column of numbers is 0, or more than any of them
		for _, column := range []string{"attempt", "fence", "revision", "claimed_at", "lease_until", "replay_until", "valid_until"} {
			conditions = append(conditions, "r."+column+" BETWEEN 1 AND 9223372036854775807")
		}
	}
	formed, part := strings.Join(conditions, " AND "), ""
	if d.Embedded {
		part = " AND r.id >= ? AND r.id < ?"
	}
	insert := cmp.Or(d.Insert, "INSERT INTO") + " {records} (fence, claimed_at, lease_until, valid_until, due_at, " +
		"id, owner, fingerprint, at_most_once, label, description, retention, horizon, version, attempt, state, revision, replay_until, reason) " +
		"VALUES ({fence}, {clock} + ?, {clock} + ?, {clock} + ?, {clock} + ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, 1, 1, 0, '')" + d.Unique
	number := func(column string) string { return "CAST(" + column + " AS CHAR) < 'a'" } // not a text, which a damaged row may have
	own := func(clock string) string {
		return load("UPDATE {records} SET state = 2, revision = revision + 1, payload = ?, lease_until = {clock} + ?, replay_until = {clock} + ?, " +
			"valid_until = {clock} + ?, due_at = {clock} + ?, retention = ?, horizon = ?, reason = '' " +
			"WHERE id = ? AND owner = ? AND " + clock + " >= 0 AND version = 1 AND state = 1 AND LENGTH(fingerprint) = 32 AND payload IS NULL AND " +
			number("lease_until") + " AND " + number("valid_until") + " AND (lease_until > {late} + ? OR valid_until > {late} + ?)")
	}
	return statements{
		look: load(look),
		wait: load("SELECT {current}" + found + d.Wait),
		free: load("SELECT {current}" + found + d.Free),
		hold: load("SELECT {held}" + found + d.Hold),

		inspect: load("SELECT {current}, {columns}, r.payload, {details}" + from),
		list:    load("SELECT {guarded}, {columns}, NULL, {details} FROM {records} AS r WHERE r.id > ? ORDER BY r.id LIMIT ?"),

		unfinished: load("SELECT {guarded}, {columns}, NULL, {details} FROM {records} AS r " +
			"WHERE (r.version <> 1 OR r.state <> 2 OR CASE WHEN " + formed + " THEN 0 ELSE 1 END = 1)" + part),
		finished: load("SELECT {guarded}, r.label, COUNT(CASE WHEN " + formed + " THEN 1 END), " +
			"COUNT(CASE WHEN " + formed + " AND (r.payload IS NULL OR r.replay_until <= (SELECT {clock}) + ?) THEN 1 END) " +
			"FROM {records} AS r WHERE r.version = 1 AND r.state = 2 AND r.valid_until > (SELECT {clock}) + ?" + part + " GROUP BY r.label"),

		now: load("SELECT {guarded}"),

		insert:        load(insert),
		insertHastily: load(d.Hasty + insert),
		claim: load("UPDATE {records} SET attempt = ?, fence = ?, owner = ?, fingerprint = ?, claimed_at = ?, lease_until = ?, valid_until = ?, " +
			"due_at = ?, at_most_once = ?, label = ?, description = ?, retention = ?, horizon = ?, " +
			"version = 1, state = 1, revision = revision + 1, replay_until = 0, reason = '', payload = NULL" + same),
		renew: load("UPDATE {records} SET lease_until = ?, revision = revision + 1" + same),
		complete: load("UPDATE {records} SET state = 2, revision = revision + 1, owner = ?, payload = ?, lease_until = ?, replay_until = ?, " +
			"valid_until = ?, due_at = ?, retention = ?, horizon = ?, reason = ''" + same),
		completeOwn:  own("{current}"),
		completeHeld: own("{held}"),
		unknown: load("UPDATE {records} SET revision = revision + 1, owner = ?, reason = ?, at_most_once = 1, lease_until = ?, " +
			"valid_until = ? + retention + horizon, due_at = ? + retention + horizon" + same),
		touch:  load("UPDATE {records} SET revision = revision + 1" + same),
		remove: load("DELETE FROM {records}" + same),
		await: load("INSERT INTO {records} (owner, fingerprint, due_at, id, fence, attempt, claimed_at, lease_until, valid_until, at_most_once, " +
			"label, description, retention, horizon, version, state, revision, replay_until, reason) " +
			"VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, '', '', 0, 0, 1, 1, 1, 0, '')" + d.Unique),
		empty: load("UPDATE {records} SET owner = ?, fingerprint = ?, due_at = ?, version = 1, state = 1, revision = revision + 1, " +
			"lease_until = 0, valid_until = 0, label = '', description = '', reason = '', payload = NULL" + same),

		purge:      due(d.DeleteDue, toPurge),
		trim:       due(d.UpdateDue, toTrim),
		dueToPurge: due(dueInBytes, toPurge),
		dueToTrim:  due(dueInBytes, toTrim),
	}
}
