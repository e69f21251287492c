// Package reprisetest tests the handlers of users against retries, crashes and failing stores.
package reprisetest
