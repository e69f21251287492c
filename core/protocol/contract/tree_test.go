package contract

import "testing"

// YAML takes some words for anything but text.
func TestTextOfYAMLIsQuotedWhereItHasTo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a", "z": "z", "A": "A", "Z": "Z", "zone/7-b": "zone/7-b", "application/json": "application/json",
		"": `""`, "7": `"7"`, "1e3": `"1e3"`, "-a": `"-a"`, "/a": `"/a"`, "a b": `"a b"`, "a:": `"a:"`, "No": `"No"`, "null": `"null"`, "y": `"y"`, "<&>": `"<&>"`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}
