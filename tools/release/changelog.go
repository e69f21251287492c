package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// sectionHeading begins the section of a version, as in Keep a Changelog.
var sectionHeading = regexp.MustCompile(`(?m)^## \[([^\]\n]+)\](.*)$`)

// readEntry returns the first section of CHANGELOG.md, which is about the version that
// comes next. A release wants it under the heading of its version. A dry run takes it
// under "Unreleased" as well.
func readEntry(dir, version string, dry bool) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(version, "v")
	first, entry, dated := firstSection(string(text))
	if first != name && (!dry || first != "Unreleased") {
		return "", refuse("CHANGELOG.md has no entry for %s: its first section is [%s]; collect the changes under \"## [%s] - %s\"", version, first, name, time.Now().Format(time.DateOnly))
	}
	if !dated && !dry {
		return "", refuse("CHANGELOG.md has no date in the heading of %s: write \"## [%s] - %s\"", version, name, time.Now().Format(time.DateOnly))
	}
	if !strings.Contains("\n"+entry, "\n- ") && !strings.Contains("\n"+entry, "\n* ") {
		return "", refuse("CHANGELOG.md has no entry for %s: its section is empty", version)
	}
	return entry, nil
}

// firstSection returns the name of the first section, its text, and whether its heading
// has a date.
func firstSection(changelog string) (name, entry string, dated bool) {
	headings := sectionHeading.FindAllStringSubmatchIndex(changelog, 2)
	if len(headings) == 0 {
		return "", "", false
	}
	h := headings[0]
	end := len(changelog)
	if len(headings) > 1 {
		end = headings[1][0]
	}
	_, err := time.Parse(" - "+time.DateOnly, changelog[h[4]:h[5]])
	return changelog[h[2]:h[3]], strings.TrimSpace(changelog[h[1]:end]), err == nil
}
