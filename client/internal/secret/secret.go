// Package secret keeps the key of a call in its error, where every printer would show it.
package secret

// Keyed is an error's part that has the key. It is in a function, because there are
// printers that show every field.
type Keyed struct{ key func() string }

// Of returns the part with a key.
func Of(key string) Keyed { return Keyed{func() string { return key }} }

// Key returns the key of the call, including one that the transport generated. The call
// can be repeated with it and the same bytes at any time. It is empty if the client
// refused the request. No printed form of the error has the key: keep it out of logs.
func (k Keyed) Key() string {
	if k.key == nil {
		return ""
	}
	return k.key()
}
