package store

// Migration is one step of the schema of a store in a database of SQL. Another migration
// tool may apply its SQL, which also records that it was applied, so that the store's own
// Migrate and Check know.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // such as "0001_records"
	SQL     string // several statements
	Down    string // undoes SQL; the first step's deletes every record
	Goose   string // both, as a file for goose (github.com/pressly/goose)
}
