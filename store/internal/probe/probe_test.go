package probe

import "testing"

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"10.6.0-MariaDB": true, "10.11.19-MariaDB-0+deb12u1": true, "11.4": true, "10.5.29-MariaDB": false,
		"9.7.0": false, "11": false, "": false, "unknown": false, "11.x": false,
	} {
		if got := AtLeast(version, 10, 6); got != want {
			t.Errorf("%q: at least 10.6: %t, want %t", version, got, want)
		}
	}
}
