// Package blob proves package repriseblob on real servers.
package blob
