package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// lastVersion returns the newest version among the tags; empty if there is none. The tags
// of core speak for all modules, because all share one version.
func lastVersion(tags []string) string {
	last := ""
	for _, tag := range tags {
		version, ok := strings.CutPrefix(tag, "core/")
		if ok && semver.IsValid(version) && (last == "" || semver.Compare(version, last) > 0) {
			last = version
		}
	}
	return last
}

// nextVersion returns the next minor version.
func nextVersion(last string) string {
	var major, minor int
	if _, err := fmt.Sscanf(last, "v%d.%d.", &major, &minor); err != nil {
		return "v0.1.0"
	}
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// checkVersion refuses a version that the module paths or the tags do not allow.
func checkVersion(version, last string, tags []string, modules []module) error {
	if semver.Canonical(version) != version || version == "" {
		return refuse("%q is not a semantic version such as v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return refuse("%s needs module paths that end in /%s", version, major)
	}
	for _, m := range modules {
		if slices.Contains(tags, m.tag(version)) {
			return refuse("the tag %s exists: a version is released once", m.tag(version))
		}
	}
	if last != "" && semver.Compare(version, last) < 0 {
		return refuse("%s is older than %s, the last release", version, last)
	}
	return nil
}
