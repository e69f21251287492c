//go:build !race

package repriselocal_test

const raceEnabled = false
